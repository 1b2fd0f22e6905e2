/** Requests over one inbox: what a server of a cluster was asked when it died is asked again, of its successor. */
import type { Msg } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import type { Link } from "../../../shared/bus/nats/link.ts";
import { Mux, type ReplyHandler } from "../../../shared/bus/nats/mux.ts";

const handler: ReplyHandler<string> = {
  ofReply: (message) => new TextDecoder().decode(message.data),
  ofFailure: (why) => why,
};

/** A connection whose server answers only the nth time it is asked. */
function server(clustered: boolean, answersAt: number) {
  const asked: string[] = [];
  let hear: (message: Msg) => void = () => undefined;
  const link = {
    ...{ clustered, connected: true, closed: false },
    subscribe: (_subject: string, _queue: string | undefined, onMessage: (message: Msg) => void) => {
      hear = onMessage;
    },
    onState: () => () => undefined,
    onDenied: () => undefined,
    publish: (_subject: string, _body: Uint8Array, options: { reply: string }) => {
      asked.push(options.reply);
      if (asked.length === answersAt)
        hear({ subject: options.reply, data: new TextEncoder().encode("answer") } as Msg);
    },
  };
  return { asked, mux: new Mux(link as unknown as Link, undefined) };
}

const ask = (mux: Mux, timeoutMs: number) =>
  mux.requestRepeatedly("q", new Uint8Array(), undefined, timeoutMs, handler);

test("defect 23: a question that died with the server it was put to is put again, under the same address", async () => {
  const { asked, mux } = server(true, 2);
  expect(await ask(mux, 5_000)).toBe("answer");
  expect(asked).toHaveLength(2);
  expect(new Set(asked).size).toBe(1);
});

test("a single server is asked once, and not answering is told when the time is over", async () => {
  const { asked, mux } = server(false, 2);
  expect(await ask(mux, 1_300)).toBe("timeout");
  expect(asked).toHaveLength(1);
});
