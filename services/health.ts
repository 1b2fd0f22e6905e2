/**
 * Asks the service on this machine, on its `METRICS_PORT`, whether it serves: for the health checks of
 * containers. It runs every few seconds beside every service, so it loads nothing but Node's own modules.
 */
import { request } from "node:http";

interface Output {
  write(text: string): unknown;
}

const answerWithinMs = 4_000;

/**
 * Returns the exit code: 0 serving, 1 not serving (starting, stopping, NATS away, no process there), 2 no
 * port to ask.
 */
export async function askHealth(
  env: Readonly<Record<string, string | undefined>>,
  out: Output,
): Promise<0 | 1 | 2> {
  const port = env.METRICS_PORT;
  if (!port || port === "0") {
    out.write("METRICS_PORT is not set: nothing to ask\n");
    return 2;
  }
  const listensEverywhere =
    env.METRICS_HOST === undefined || ["", "0.0.0.0", "::"].includes(env.METRICS_HOST);
  const host = listensEverywhere ? "127.0.0.1" : env.METRICS_HOST;
  const { ok, text } = await ask(`http://${host?.includes(":") ? `[${host}]` : host}:${port}/readyz`);
  out.write(`${text}\n`);
  return ok ? 0 : 1;
}

function ask(url: string): Promise<{ ok: boolean; text: string }> {
  return new Promise((resolve) => {
    const fail = (error: Error) => resolve({ ok: false, text: `${url}: ${error.message}` });
    const asking = request(url, { timeout: answerWithinMs, agent: false }, (response) => {
      response.resume();
      const ok = response.statusCode === 200;
      resolve({ ok, text: ok ? "serving" : `not serving (${response.statusCode})` });
    });
    asking.on("timeout", () => asking.destroy(new Error(`no answer within ${answerWithinMs} ms`)));
    asking.on("error", fail);
    asking.end();
  });
}
