import { afterEach, expect, it, vi } from "vitest";
import { hostEnvironment } from "../../../services/worker/hosts/host-environment.ts";

afterEach(() => vi.unstubAllEnvs());

it("gives users' code in a host none of the worker's secrets", () => {
  vi.stubEnv("NATS_URL", "nats://someone:secret@nats:4222,nats://other:secret@nats-2:4222");
  for (const name of ["NATS_PASSWORD", "NATS_TOKEN", "NATS_NKEY", "NATS_CREDS", "GATEWAY_TOKENS"])
    vi.stubEnv(name, "secret");
  vi.stubEnv("MODEL_HUB_TOKEN", "the user's own");
  const env = hostEnvironment(0, { maxSessions: 1, resources: {}, env: { NATS_CREDS: "meant for it" } });
  expect(JSON.stringify(env)).not.toContain("secret");
  expect(env.NATS_URL).toBe("nats://nats:4222,nats://nats-2:4222");
  expect(env.MODEL_HUB_TOKEN).toBe("the user's own");
  expect(env.NATS_CREDS).toBe("meant for it");
});
