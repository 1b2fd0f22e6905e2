/** What the publisher makes of the server's answers. */
import type { Msg } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import type { Link } from "../../../shared/bus/nats/link.ts";
import type { Meaning, Mux } from "../../../shared/bus/nats/mux.ts";
import { Publisher } from "../../../shared/bus/nats/publish.ts";

const inProcess = {
  error: { code: 409, err_code: 10158, description: "duplicate message id is in process" },
};

/** A server that gives these answers, one after the other. */
function publisher(...answers: object[]) {
  const link = { info: { max_payload: 1_000 }, connected: true, clustered: true };
  const requestRepeatedly = async (subject: string, ...rest: unknown[]) => {
    const { ofReply } = rest.at(-1) as Meaning<unknown>;
    const data = new TextEncoder().encode(JSON.stringify(answers.length > 1 ? answers.shift() : answers[0]));
    return ofReply({ data } as Msg, subject);
  };
  return new Publisher(link as unknown as Link, { requestRepeatedly } as unknown as Mux);
}

test("a message whose first try is still being stored is asked for again", async () => {
  const stored = { stream: "S", seq: 7, duplicate: true };
  const outcome = await publisher(inProcess, stored).publish("a", new Uint8Array(), { msgId: "m" });
  expect(outcome).toEqual({ kind: "stored", seq: 7, duplicate: true });
});

test("where that does not come to an end, it is unknown whether the message is stored (BUS-1)", async () => {
  const options = { msgId: "m", timeoutMs: 300 };
  expect(await publisher(inProcess).publish("a", new Uint8Array(), options)).toEqual({ kind: "unknown" });
});
