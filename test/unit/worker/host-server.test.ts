import { expect, it } from "vitest";
import { HostServer } from "../../../services/worker/hosts/isolated/host-server.ts";
import type { FromHost, HostRequest } from "../../../services/worker/hosts/isolated/protocol.ts";
import { call, collectApp, defineSession } from "../../../shared/definitions/index.ts";

const listening = defineSession("listening", {
  init: () => ({ heard: [] as string[] }),
  calls: {
    /** Goes on listening when it is over, as code does that races an event with its work. */
    forget: call({
      run(state, _input: null, ctx) {
        void (async () => {
          for await (const { name } of ctx.session.events) state.heard.push(name);
        })();
        return null;
      },
    }),
    next: call({
      async run(state, _input: null, ctx) {
        for await (const { name } of ctx.session.events) return { name, stolen: state.heard };
        return null;
      },
    }),
  },
});

it("lets a call listen to events until it is over, and no longer", async () => {
  const said: FromHost[] = [];
  const server = new HostServer(collectApp({ listening }), (message) => said.push(message));
  let id = 0;
  const ask = async (request: HostRequest) => {
    const asked = ++id;
    server.receive({ kind: "request", id: asked, request });
    const answer = () => said.find((one) => one.kind === "done" && one.id === asked);
    await expect.poll(answer, { timeout: 3_000 }).toBeDefined();
    return answer();
  };
  const key = "s@1";
  const session = {
    key,
    id: "s",
    type: "listening",
    epoch: 1,
    attachment: 1,
    workerId: "w",
    host: "h",
    resourceId: "r",
    metadata: {},
  };
  const run = { instanceId: "i", name: "x", attempt: 1, lastHeartbeat: undefined };
  await ask({ kind: "init", session, config: undefined, restore: undefined });
  await ask({ kind: "call", key, name: "forget", inputs: [null], run });
  server.receive({ kind: "event", key, name: "later", payload: 1 });
  await new Promise(setImmediate); // remaining listeners were called by now
  expect(await ask({ kind: "call", key, name: "next", inputs: [null], run })).toMatchObject({
    value: [{ ok: true, value: { name: "later", stolen: [] } }],
  });
});

it("holds a type that says it is not thread-safe to it, except in production", async () => {
  let release: (() => void) | undefined;
  const alone = defineSession("alone", {
    threadSafe: false,
    init: () => null,
    calls: {
      hold: call({ run: () => new Promise<void>((resolve) => (release = resolve)) }),
      quick: call({ run: () => 1 }),
    },
  });
  const session = {
    key: "s@1",
    id: "s",
    type: "alone",
    epoch: 1,
    attachment: 1,
    workerId: "w",
    host: "h",
    resourceId: "r",
    metadata: {},
  };
  const run = { instanceId: "i", name: "x", attempt: 1, lastHeartbeat: undefined };
  for (const checksThreadSafety of [true, false]) {
    const said: FromHost[] = [];
    const server = new HostServer(collectApp({ alone }), (message) => said.push(message), {
      checksThreadSafety,
    });
    const ask = (id: number, request: HostRequest) => server.receive({ kind: "request", id, request });
    ask(1, { kind: "init", session, config: undefined, restore: undefined });
    await expect.poll(() => said.length).toBe(1);
    ask(2, { kind: "call", key: "s@1", name: "hold", inputs: [null], run });
    ask(3, { kind: "call", key: "s@1", name: "quick", inputs: [null], run });
    await expect.poll(() => said.length).toBe(2);
    const refused = { kind: "failed", id: 3, error: { code: "not_thread_safe" } };
    expect(said[1]).toMatchObject(checksThreadSafety ? refused : { kind: "done", id: 3 });
    release?.();
    await expect.poll(() => said.length).toBe(3);
    ask(4, { kind: "call", key: "s@1", name: "quick", inputs: [null], run });
    await expect.poll(() => said.at(-1)).toMatchObject({ kind: "done", id: 4 });
  }
});
