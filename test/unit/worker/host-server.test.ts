import { expect, it } from "vitest";
import { HostServer } from "../../../services/worker/hosts/host-server.ts";
import type { FromHost, HostRequest } from "../../../services/worker/hosts/protocol.ts";
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
  const session = { key, id: "s", type: "listening", epoch: 1, attachment: 1, workerId: "w", metadata: {} };
  const run = { instanceId: "i", name: "x", attempt: 1, lastHeartbeat: undefined };
  await ask({ kind: "init", session, config: undefined, restore: undefined });
  await ask({ kind: "call", key, name: "forget", inputs: [null], run });
  server.receive({ kind: "event", key, name: "later", payload: 1 });
  await new Promise(setImmediate); // whoever still listens has heard it by now
  expect(await ask({ kind: "call", key, name: "next", inputs: [null], run })).toMatchObject({
    value: [{ ok: true, value: { name: "later", stolen: [] } }],
  });
});
