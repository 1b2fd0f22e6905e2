"""What tests of hosts in Python do, told by their calls."""

import logging
import os
import subprocess
import sys
import threading
import time

from holdfast_host import HostError, NonRetryable, session

print("loaded")


class State:
    def __init__(self, session_id, config):
        self.id = session_id
        self.config = config
        self.count = 0
        self.models = 0


@session.init
def init(config, ctx):
    if config and config.get("fail"):
        raise ValueError(config["fail"])
    if config and config.get("exit"):
        sys.stderr.write("no room on the device\n")
        os._exit(config["exit"])
    ctx.report_model("tiny", load_ms=1)
    return State(ctx.session.id, config)


@session.call
def where(state, _input, ctx):
    return {"pid": os.getpid(), "omp": os.environ.get("OMP_NUM_THREADS"), "threads": ctx.threads, "id": state.id}


@session.call
def environment(state, names):
    return {name: os.environ.get(name) for name in names}


@session.call
def count(state, by):
    state.count += by
    return state.count


@session.call
def keep(state, asked, ctx):
    name, data = asked
    blobs = ctx.session.blobs
    stored = blobs.put(name, data.encode())
    found = blobs.get(name).decode()
    names = [one["name"] for one in blobs.list()]
    return {"bytes": stored["bytes"], "found": found, "names": names, "deleted": [blobs.delete(name), blobs.delete(name)]}


@session.call
def crash(state, code):
    sys.stderr.write("the model is on fire\n")
    os._exit(code)


@session.call
def leave(state, code):
    sys.exit(code)


@session.call
def fail(state, _input):
    raise NonRetryable("as asked", code="asked_for", details={"a": 1})


@session.call
def divide(state, by):
    try:
        return 1 / by
    except ZeroDivisionError as error:
        raise KeyError("nothing to share") from error


@session.call
def weird(state, _input):
    return {"fn": lambda: 1}


@session.call
def stream(state, n, ctx):
    for i in range(n):
        yield {"i": i}
    ctx.heartbeat({"at": n})
    ctx.log.info("streamed", n=n)
    print("printed")
    logging.getLogger("model").warning("warned")
    return n


@session.call
def wait(state, _input, ctx):
    while True:
        ctx.sleep(0.01)


@session.call
async def wait_async(state, _input):
    import asyncio

    await asyncio.sleep(60)


@session.call
async def add_async(state, by):
    state.count += by
    return state.count


@session.call(name="next")
def next_event(state, _input, ctx):
    return ctx.next_event(5)


@session.call
def child(state, _input):
    return subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]).pid


@session.call
def give_up(state, reason, ctx):
    ctx.session.give_up(reason)
    return "asked"


pair = threading.Barrier(2)


@session.call
def meet(state, _input):
    """Ends when two of these run at once."""
    pair.wait(10)
    return threading.current_thread() is threading.main_thread()


@session.call
def echo(state, value):
    print(value)
    print(value.get("text") if isinstance(value, dict) else value)
    return value


@session.call
def compute(state, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return "done"


@session.batch
def double(state, inputs, ctx):
    if "poison" in inputs:
        raise ValueError("poison")
    return [HostError("odd", code="odd", retryable=False) if one == 13 else one * 2 for one in inputs]


@session.call
def reverse(state, data):
    assert isinstance(data, bytes), type(data)
    return data[::-1]


@session.call
def big(state, size):
    return "x" * size


@session.checkpoint
def checkpoint(state):
    return str(state.count).encode()


@session.restore
def restore(config, data, ctx):
    state = State(ctx.session.id, config)
    state.count = int(data)
    return state


@session.snapshot
def snapshot(state):
    return {"count": state.count}


@session.shutdown
def shutdown(state, ctx):
    ctx.log.info("shut down", count=state.count)


session.run()
