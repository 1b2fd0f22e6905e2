/**
 * `GET /api/instances/:id/stream` for clients that accept `text/event-stream`: the chunks that an instance's
 * work writes, from the beginning or after `Last-Event-ID`, then live until the instance ends. The id of an
 * event is the sequence of its chunk in the stream, so a client that reconnects, to this gateway or to
 * another, continues without a gap and without a repetition.
 */
import type { Context, Handler } from "hono";
import { stream } from "hono/streaming";
import { z } from "zod";
import { InstanceId } from "../../../schemas/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import { shapeOf } from "../security/index.ts";
import { busAway, Problem } from "./problem.ts";
import type { Caller } from "./route.ts";

interface InstanceStreamSource {
  client: Client;
  /** Throws if the caller may not follow the instance; records the read in the audit. */
  admit(c: Context, instanceId: string): Promise<Pick<Caller, "payloads">>;
  busConnected(): boolean;
}

const Position = z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
/** Keeps proxies from closing an idle connection, and detects dead ones. */
const pingEveryMs = 15_000;
/** How long a browser waits before it reconnects. */
const retryMs = 500;
const mostReaders = 1_000;

export function serveInstanceStream(source: InstanceStreamSource): Handler {
  let readers = 0;
  return async (c, next) => {
    if (!(c.req.header("accept") ?? "").includes("text/event-stream")) return next();
    const id = InstanceId.safeParse(c.req.param("id"));
    const after = Position.safeParse(c.req.header("last-event-id") ?? c.req.query("after") ?? 0);
    const { payloads } = await source.admit(c, id.data ?? "");
    if (!id.success || !after.success) throw invalid(id.success ? "Last-Event-ID" : "id");
    if (!source.busConnected()) throw busAway();
    if (readers >= mostReaders)
      throw new Problem({ status: 503, code: "too_many_listeners", message: "Too many pages are open" });
    await source.client.status(id.data, { largestBytes: 0 });
    c.header("content-type", "text/event-stream; charset=utf-8");
    c.header("cache-control", "no-store");
    c.header("x-accel-buffering", "no");
    return stream(
      c,
      async (out) => {
        readers++;
        const gone = new AbortController();
        out.onAbort(() => gone.abort());
        const ping = setInterval(
          () => void out.write(": still here\n\n").catch(() => gone.abort()),
          pingEveryMs,
        );
        const options = { after: after.data, signal: gone.signal };
        try {
          await out.write(`retry: ${retryMs}\n\n`);
          for await (const item of source.client.stream(id.data, options)) {
            if (gone.signal.aborted) return;
            await out.write(
              `id: ${item.offset}\nevent: chunk\ndata: ${JSON.stringify(payloads ? item : { ...item, chunk: shapeOf(item.chunk) })}\n\n`,
            );
          }
          if (gone.signal.aborted) return;
          const { status } = await source.client.status(id.data, { largestBytes: 0 });
          await out.write(`event: end\ndata: ${JSON.stringify({ status })}\n\n`);
        } finally {
          clearInterval(ping);
          gone.abort();
          readers--;
        }
        // If NATS is away or this gateway stops, the connection ends without an end event: the client
        // reconnects and continues.
      },
      async () => undefined,
    );
  };
}

const invalid = (what: string): Problem =>
  new Problem({
    status: 400,
    code: "invalid_input",
    message: `${what}: not one this route can read`,
    hint: "Last-Event-ID and `after` are the `offset` of the last chunk that was read, or 0.",
  });
