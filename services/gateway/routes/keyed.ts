/** Sessions that belong to a key: call, describe, close. */
import { z } from "zod";
import { KeyedOnLost, keyMetadataKey, Name, SessionId, tokenRule } from "../../../schemas/index.ts";
import { keyedSessionId } from "../../../shared/definitions/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";
import { sentencesFor } from "./sessions.ts";

const tag = "sessions";
export const CallResult = z.strictObject({ ok: z.literal(true), output: z.unknown() });
export const KeyClosed = z.strictObject({ ok: z.literal(true), closed: z.boolean() });
export const KeyDescription = z.strictObject({
  ok: z.literal(true),
  sessionId: SessionId,
  session: z.unknown(),
  sentences: z.array(z.string()),
});

export const CallBody = z.strictObject({
  input: z.unknown().optional(),
  config: z.unknown().optional().meta({
    description: "Needed if the call opens the key; otherwise it must be the config of the open session",
  }),
  onLost: KeyedOnLost.optional(),
  ttl: z.string().max(32).optional(),
  wait: z
    .number()
    .min(0.1)
    .max(3600)
    .default(30)
    .meta({ description: "Seconds; then the call is cancelled" }),
});
export type CallBody = z.infer<typeof CallBody>;

/** The handler refuses an invalid key as `invalid_key`. */
const Key = z.string().max(1024).meta({ description: tokenRule });
const KeyPath = z.object({ type: Name, key: Key });
export const CallPath = KeyPath.extend({ call: Name });

export const keyedHandle = (client: Client, { type, key }: { type: string; key: string }, body: CallBody) =>
  client.session(type, {
    key,
    ...(body.config !== undefined && { config: body.config }),
    ...(body.onLost !== undefined && { onLost: body.onLost }),
    ...(body.ttl !== undefined && { ttl: parseDuration(body.ttl, "ttl") }),
  });

export function keyedRoutes({ client }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "describeKey",
      method: "get",
      path: "/api/keys/:type/:key",
      tag,
      summary: "The state of the session of a key",
      role: "viewer",
      params: KeyPath,
      answer: KeyDescription,
      reads: ({ params }) => keyedSessionId(params.type, params.key),
      async act({ params, caller }) {
        const described = await client.sessions.describe(keyedSessionId(params.type, params.key));
        const { record, live, figures } = described;
        const { lossCapability: _, ...shown } = record;
        return {
          ok: true as const,
          sessionId: record.sessionId,
          session: { ...shown, key: record.metadata[keyMetadataKey], live, figures },
          sentences: sentencesFor(described, caller),
        };
      },
    }),
    route({
      id: "closeKey",
      method: "post",
      path: "/api/sessions/:type/:key/close",
      tag,
      summary: "Close the session of a key for everybody; the next call opens it anew",
      role: "operator",
      params: KeyPath,
      body: z.strictObject({ reason: z.string().max(500).optional() }),
      answer: KeyClosed,
      audit: ({ params }) => ({ target: keyedSessionId(params.type, params.key) }),
      async act({ params, body }) {
        const { closed } = await client.sessions.closeKey(params.type, params.key, body.reason);
        return { ok: true as const, closed };
      },
    }),
    route({
      id: "callKey",
      method: "post",
      path: "/api/sessions/:type/:key/:call",
      tag,
      summary:
        "Call the session of a key, which is opened if it is not open. With Accept: text/event-stream the answer is what the call writes, then its result. Closing the connection cancels the call.",
      role: "operator",
      params: CallPath,
      body: CallBody,
      runsCode: true,
      answer: CallResult,
      audit: ({ params }) => ({
        target: keyedSessionId(params.type, params.key),
        with: { call: params.call },
      }),
      async act({ params, body, signal }) {
        const options = { timeout: body.wait * 1000, signal };
        const output = await keyedHandle(client, params, body).call(params.call, body.input, options);
        return { ok: true as const, output };
      },
    }),
  ];
}
