/**
 * `GET /api/events`: server-sent events. Authenticated like any other route, by header or cookie, never by
 * the address.
 */
import type { Context, Handler } from "hono";
import { stream } from "hono/streaming";
import { z } from "zod";
import { InstanceId } from "../../../schemas/index.ts";
import type { Histories } from "../histories.ts";
import { type Broadcast, type Topic, topics } from "../live/broadcast.ts";
import type { Overview } from "../live/overview.ts";
import { Problem } from "./problem.ts";
import type { Caller } from "./route.ts";

const Query = z.object({
  topics: z
    .string()
    .transform((text) => text.split(",").filter((topic) => topic !== ""))
    .pipe(z.array(z.enum(topics)))
    .default(["overview"]),
  /** Sends `changed` whenever this instance changes. */
  instance: InstanceId.optional(),
});

export interface EventSource {
  broadcast: Broadcast;
  histories: Histories;
  overview(): Promise<Overview>;
  admit(c: Context, instanceId: string | undefined): Promise<Caller>;
  /** Before rows with users' values are sent (GATEWAY-8). */
  recordRead(caller: Caller, what: string): Promise<void>;
  busConnected(): boolean;
  onReconnected(listener: () => void): () => void;
}

/** Limit of open pages per gateway; each holds a connection open. */
const mostListeners = 1_000;

export function serveEvents(source: EventSource): Handler {
  return async (c) => {
    const query = Query.safeParse(c.req.query());
    if (!query.success) {
      const message = query.error.issues
        .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
        .join("; ");
      throw new Problem({ status: 400, code: "invalid_input", message });
    }
    const caller = await source.admit(c, query.data.instance);
    if (source.broadcast.size >= mostListeners) {
      throw new Problem({ status: 503, code: "too_many_listeners", message: "Too many pages are open" });
    }
    c.header("content-type", "text/event-stream; charset=utf-8");
    c.header("cache-control", "no-store");
    c.header("x-accel-buffering", "no");
    // A token for some orchestrations follows one instance, not the whole installation.
    const wanted = new Set<Topic>(caller.scope?.orchestrations ? [] : query.data.topics);
    const rows = [...wanted].filter((topic) => topic !== "overview");
    // Without NATS there is no entry in the audit, and no values: the page comes again when NATS is back.
    const unrecorded = caller.payloads && rows.length > 0 && !source.busConnected();
    if (caller.payloads && rows.length > 0 && !unrecorded)
      await source.recordRead(caller, rows.sort().join(","));
    return stream(c, async (out) => {
      let end: () => void = () => undefined;
      const over = new Promise<void>((resolve) => {
        end = resolve;
      });
      const seat = source.broadcast.join({
        topics: wanted,
        payloads: caller.payloads && !unrecorded,
        write: async (text) => void (await out.write(text)),
        close: end,
      });
      out.onAbort(end);
      const unlisten = unrecorded ? source.onReconnected(end) : () => undefined;
      const unwatch = await watchInstance(source, query.data.instance, () =>
        seat.send("changed", { instanceId: query.data.instance }),
      );
      seat.send("hello", wanted.has("overview") ? { overview: await source.overview() } : {});
      await over;
      unlisten();
      unwatch();
      seat.leave();
    });
  };
}

/** Several changes in a short time are sent as one: the page requests everything new anyway. */
async function watchInstance(
  source: EventSource,
  instanceId: string | undefined,
  onChange: () => void,
): Promise<() => void> {
  if (instanceId === undefined || !source.busConnected()) return () => undefined;
  let pending: NodeJS.Timeout | undefined;
  const stop = await source.histories.onChange(instanceId, () => {
    pending ??= setTimeout(() => {
      pending = undefined;
      onChange();
    }, 100);
  });
  return () => {
    clearTimeout(pending);
    stop();
  };
}
