/** What the publisher makes of the server's answers. */
import { headers, type Msg } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import type { Link } from "../../../shared/bus/nats/link.ts";
import type { Mux, ReplyHandler } from "../../../shared/bus/nats/mux.ts";
import { Publisher } from "../../../shared/bus/nats/publish.ts";

const inProcess = {
  error: { code: 409, err_code: 10158, description: "duplicate message id is in process" },
};

/** What a server says where no stream takes the message. */
const nobody = "nobody";
const noResponders = { data: new Uint8Array(), headers: headers(503, "No Responders") } as Msg;

/** A server that gives these answers, one after the other. */
const publisher = (...answers: Answers) => answering({ clustered: true }, answers);

type Answers = (object | typeof nobody)[];

function answering({ clustered }: { clustered: boolean }, answers: Answers) {
  const link = { info: { max_payload: 1_000 }, connected: true, clustered };
  const requestRepeatedly = async (subject: string, ...rest: unknown[]) => {
    const { ofReply } = rest.at(-1) as ReplyHandler<unknown>;
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === nobody) return ofReply(noResponders, subject);
    return ofReply({ data: new TextEncoder().encode(JSON.stringify(answer)) } as Msg, subject);
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

test("defect 23: while a stream of a cluster has no leader, a publish waits for one", async () => {
  const stored = { stream: "S", seq: 7 };
  const options = { msgId: "m" };
  const outcome = await publisher(nobody, nobody, stored).publish("a", new Uint8Array(), options);
  expect(outcome).toEqual({ kind: "stored", seq: 7, duplicate: false });
  const forLong = publisher(nobody).publish("a", new Uint8Array(), { ...options, timeoutMs: 300 });
  await expect(forLong).rejects.toMatchObject({ code: "no_stream" });
});

test("one server alone that has no stream is not waited for", async () => {
  const one = answering({ clustered: false }, [nobody, { stream: "S", seq: 7 }]);
  await expect(one.publish("a", new Uint8Array(), { msgId: "m" })).rejects.toMatchObject({
    code: "no_stream",
  });
});
