import { afterEach, expect, it } from "vitest";
import { askHealth } from "../../../services/health.ts";
import { MetricsServer } from "../../../shared/telemetry/metrics-server.ts";

let server: MetricsServer | undefined;
afterEach(() => server?.stop());

async function ask(env: Record<string, string>) {
  let said = "";
  const code = await askHealth(env, { write: (text) => (said += text) });
  return { code, said };
}

it("says what the service beside it says", async () => {
  let ready = false;
  server = new MetricsServer({
    host: "127.0.0.1",
    port: 0,
    version: "0",
    text: async () => "",
    ready: () => ready,
  });
  await server.start();
  const env = { METRICS_PORT: String(server.port), METRICS_HOST: "0.0.0.0" };
  expect(await ask(env)).toEqual({ code: 1, said: "not serving (503)\n" });
  ready = true;
  expect(await ask(env)).toEqual({ code: 0, said: "serving\n" });
  await server.stop();
  expect(await ask(env)).toMatchObject({ code: 1, said: expect.stringContaining("ECONNREFUSED") });
});

it("has nothing to ask without a port", async () => {
  expect(await ask({})).toEqual({ code: 2, said: "METRICS_PORT is not set: nothing to ask\n" });
});
