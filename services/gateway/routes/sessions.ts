/** Sessions: list, describe, explain, evict, drain, send an event. */
import { z } from "zod";
import { keyMetadataKey, Name, SessionId } from "../../../schemas/index.ts";
import type { SessionDescription } from "../../../shared/sdk/index.ts";
import { notFound } from "../http/problem.ts";
import { Reply, type RouteSpec, route } from "../http/route.ts";
import { SessionRow } from "../live/rows.ts";
import { shapeOf } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";

const tag = "sessions";
export const SessionList = z.strictObject({ rows: z.array(SessionRow), matching: z.int() });
export const SessionExplained = z.strictObject({ sessionId: SessionId, sentences: z.array(z.string()) });
export const SessionAccepted = z.strictObject({ ok: z.literal(true), sessionId: SessionId });

/** Sentences about a session may quote what its code threw, and why its holder gave it up. */
export function sentencesFor(
  { record, explanation }: Pick<SessionDescription, "record" | "explanation">,
  { payloads }: { payloads: boolean },
): string[] {
  const quoted = [record.error?.message, record.lost?.detail].flatMap((text) => text || []);
  if (payloads) return explanation;
  return explanation.map((sentence) =>
    quoted.reduce((hidden, text) => hidden.replaceAll(text, `(${shapeOf(text)})`), sentence),
  );
}

const ofSession = z.object({ id: SessionId });

export function sessionRoutes({ client, live }: GatewayParts): RouteSpec[] {
  const known = (id: string) => {
    const row = live.session(id);
    if (!row) throw notFound("session", id);
    return row;
  };
  return [
    route({
      id: "listSessions",
      method: "get",
      path: "/api/sessions",
      tag,
      summary: "List sessions, latest first",
      role: "viewer",
      query: z.object({
        type: z.string().max(128).optional(),
        phase: z.string().max(128).optional().meta({ description: "Comma-separated phases" }),
        worker: z.string().max(128).optional(),
        instance: z.string().max(128).optional(),
        key: z.string().max(128).optional().meta({ description: "Of sessions that belong to a key" }),
        metadata: z.string().max(1024).optional().meta({ description: "Comma-separated name=value" }),
        limit: z.coerce.number().int().min(1).max(2000).default(500),
      }),
      answer: SessionList,
      lists: "sessions",
      act({ query }) {
        const phases = query.phase?.split(",");
        const wanted = (query.metadata?.split(",") ?? []).map((pair) => {
          const at = pair.indexOf("=");
          return [pair.slice(0, Math.max(0, at)), pair.slice(at + 1)] as const;
        });
        const rows = live
          .sessions()
          .filter(
            (row) =>
              (query.type === undefined || row.type === query.type) &&
              (phases === undefined || phases.includes(row.phase)) &&
              (query.worker === undefined || row.workerId === query.worker) &&
              (query.instance === undefined || row.instanceId === query.instance) &&
              (query.key === undefined || row.metadata[keyMetadataKey] === query.key) &&
              wanted.every(([name, value]) => row.metadata[name] === value),
          )
          .sort((a, b) => b.openedAt - a.openedAt);
        return { rows: rows.slice(0, query.limit), matching: rows.length };
      },
    }),
    route({
      id: "getSession",
      method: "get",
      path: "/api/sessions/:id",
      tag,
      summary: "One session with its holder, lease and past owners",
      role: "viewer",
      params: ofSession,
      answer: SessionRow,
      reads: ({ params }) => params.id,
      act: ({ params }) => known(params.id),
    }),
    route({
      id: "explainSession",
      method: "get",
      path: "/api/sessions/:id/explain",
      tag,
      summary: "Why the session is where it is, in sentences",
      role: "viewer",
      params: ofSession,
      answer: SessionExplained,
      reads: ({ params }) => params.id,
      async act({ params, caller }) {
        const described = await client.sessions.describe(params.id);
        return { sessionId: params.id, sentences: sentencesFor(described, caller) };
      },
    }),
    route({
      id: "getSessionBlob",
      method: "get",
      path: "/api/sessions/:id/blobs/:name",
      tag,
      summary: "What code inside the session stored under a name, as it is; the session lists its names",
      role: "viewer",
      params: z.object({ id: SessionId, name: z.string().max(128) }),
      answer: z.unknown(),
      reads: ({ params }) => params.id,
      valueOnly: true,
      async act({ params }) {
        const bytes = await client.sessions.blob(params.id, params.name);
        if (!bytes) throw notFound("blob", params.name);
        return new Reply(bytes, {
          "content-type": "application/octet-stream",
          "content-disposition": "attachment",
          "x-content-type-options": "nosniff",
        });
      },
    }),
    ...(["evict", "drain"] as const).map((verb) =>
      route({
        id: `${verb}Session`,
        method: "post",
        path: `/api/sessions/:id/${verb}`,
        tag,
        summary:
          verb === "evict"
            ? "Take the session from its holder at once. Its instance gets session_lost (evicted)."
            : "Let its holder finish what runs, save the state where the type can, and hand the session on (S13).",
        role: "operator",
        params: ofSession,
        body: z.strictObject({ reason: z.string().max(500).optional() }),
        answer: SessionAccepted,
        status: 202,
        audit: ({ params }) => ({ target: params.id }),
        async act({ params, body }) {
          await client.sessions[verb](params.id, body.reason);
          return { ok: true as const, sessionId: params.id };
        },
      }),
    ),
    route({
      id: "sendToSession",
      method: "post",
      path: "/api/sessions/:id/send/:event",
      tag,
      summary: "Send something to the session's live state, where its code listens to ctx.session.events",
      role: "operator",
      params: z.object({ id: SessionId, event: Name }),
      body: z.strictObject({ payload: z.unknown().optional() }),
      answer: SessionAccepted,
      status: 202,
      audit: ({ params }) => ({ target: params.id, with: { event: params.event } }),
      async act({ params, body }) {
        await client.sessions.send(params.id, params.event, body.payload);
        return { ok: true as const, sessionId: params.id };
      },
    }),
  ];
}
