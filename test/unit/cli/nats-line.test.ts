import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { natsPub } from "../../../services/cli/connection/nats-line.ts";

const nats = { url: "nats://ada:secret@h:4222", waitMs: 0, credsFile: "/my keys/a.creds" };

it("is a line a shell understands, without secrets", () => {
  const value = { text: 'it\'s $HOME `date` "quoted"\nnew line' };
  const line = natsPub({ nats }, { subject: "orchestrations.w1.start.hello", value, msgId: "start-w1" });
  const words = execFileSync("bash", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" })
    .split("\0")
    .slice(0, -1);
  expect(words).toEqual([
    ...["nats", "--server", "nats://***@h:4222", "--creds", "/my keys/a.creds", "pub", "--jetstream"],
    ...["orchestrations.w1.start.hello", JSON.stringify(value), "-H", "Nats-Msg-Id:start-w1"],
  ]);
});

it("has an empty body where there is no value, and none that is too long to read", () => {
  const of = (value: unknown) =>
    natsPub({ nats: { url: "nats://h:1", waitMs: 0 } }, { subject: "s.a", value });
  expect(of(undefined)).toBe("nats --server nats://h:1 pub --jetstream s.a ''");
  expect(of("x".repeat(10_000))).toBe("nats --server nats://h:1 pub --jetstream s.a '<the value, as JSON>'");
});
