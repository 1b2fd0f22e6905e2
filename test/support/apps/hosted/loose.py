"""Speaks the protocol without the library and breaks it as it is asked to: answers a call with the lines in its input."""

import json
import sys


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


say('{"kind":"ready","protocol":1,"unknown":"ignored"}')
for line in sys.stdin:
    message = json.loads(line)
    if message["kind"] == "call":
        for answer in message["input"]:
            if answer == "hold":
                continue
            if answer == "long":
                answer = '{"kind":"done","id":"$id","value":"%s"}' % ("x" * 200000)
            say(answer.replace('"$id"', str(message["id"])))
    elif message["kind"] == "cancel":
        say(json.dumps({"kind": "done", "id": message["id"], "value": "too late"}))
    elif message["kind"] == "ping":
        say(json.dumps({"kind": "pong", "n": message["n"]}))
    elif "id" in message:
        say(json.dumps({"kind": "done", "id": message["id"]}))
