/**
 * `POST /api/sessions/:type/:key/:call` for clients that accept `text/event-stream`: the call's chunks as
 * they are written, then its result or its error. Closing the connection cancels the call.
 */
import type { Context, Handler } from "hono";
import { stream } from "hono/streaming";
import { parseJson } from "../../../shared/bus/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import { CallBody, CallPath, keyedHandle } from "../routes/index.ts";
import { shapeOf } from "../security/index.ts";
import { busAway, Problem, toProblem } from "./problem.ts";
import type { Caller } from "./route.ts";
import { withoutUsersWords } from "./users-words.ts";

interface CallStreamSource {
  client: Client;
  /** Throws if the caller may not make the call; records the request in the audit. */
  admit(c: Context, target: { type: string; key: string; call: string }): Promise<Pick<Caller, "payloads">>;
  busConnected(): boolean;
}

export function serveCallStream(source: CallStreamSource): Handler {
  return async (c, next) => {
    if (!(c.req.header("accept") ?? "").includes("text/event-stream")) return next();
    const path = CallPath.safeParse(c.req.param());
    if (!path.success || path.data.call === "close") return next();
    const parsed = parseJson(new Uint8Array(await c.req.arrayBuffer()));
    const body = CallBody.safeParse(parsed.kind === "ok" ? parsed.value : undefined);
    if (!body.success)
      throw new Problem({
        status: 400,
        code: "invalid_input",
        message: `body: ${body.error.issues[0]?.message ?? "not what this route takes"}`,
      });
    const { payloads } = await source.admit(c, path.data);
    const shown = (value: unknown) => (payloads ? value : shapeOf(value));
    if (!source.busConnected()) throw busAway();
    const gone = new AbortController();
    const { call } = path.data;
    const options = { timeout: body.data.wait * 1000, signal: gone.signal };
    const calling = keyedHandle(source.client, path.data, body.data).stream(call, body.data.input, options);
    c.header("content-type", "text/event-stream; charset=utf-8");
    c.header("cache-control", "no-store");
    c.header("x-accel-buffering", "no");
    return stream(c, async (out) => {
      out.onAbort(() => gone.abort());
      const send = (event: string, data: unknown) =>
        out.write(`event: ${event}\ndata: ${JSON.stringify(data ?? null)}\n\n`);
      try {
        for await (const chunk of calling) await send("chunk", shown(chunk));
        await send("result", { ok: true, output: shown(await calling.result) });
      } catch (error) {
        const shownError = payloads ? error : withoutUsersWords(error);
        if (!gone.signal.aborted) await send("error", toProblem(shownError).body());
      } finally {
        gone.abort();
      }
    });
  };
}
