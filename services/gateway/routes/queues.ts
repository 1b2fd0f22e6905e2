/** Queues and dead letters. */
import { z } from "zod";
import { DeadLetterView } from "../../../shared/sdk/internal.ts";
import { type RouteSpec, route } from "../http/route.ts";
import { StreamsView } from "../live/stream-watch.ts";
import { usersText } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";

/**
 * Everything of the original message except its subject may contain a user's values; so may the text of the
 * reason.
 */
export const DeadLetterShown = DeadLetterView.extend({
  text: usersText(z.string().optional()),
  headers: usersText(DeadLetterView.shape.headers),
  reason: z.looseObject({ code: z.string(), message: usersText(z.string()) }),
});
export const DeadList = z.strictObject({
  letters: z.array(DeadLetterShown),
  total: z.int(),
  /** Pass it as `before` to get the next page; absent on the last page. */
  next: z.int().optional(),
});
export const DeadRetried = z.strictObject({ ok: z.literal(true), subject: z.string() });
export const Done = z.strictObject({ ok: z.literal(true) });

const ofLetter = z.object({ seq: z.coerce.number().int().positive() });

export function queueRoutes({ streams, client }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "listQueues",
      method: "get",
      path: "/api/queues",
      tag: "queues",
      summary: "Streams with their sizes, consumers and lag",
      role: "viewer",
      answer: StreamsView,
      act: () => streams.view(),
    }),
    route({
      id: "listDeadLetters",
      method: "get",
      path: "/api/dead",
      tag: "dead letters",
      summary: "Messages that were refused, latest first",
      role: "viewer",
      query: z.object({
        limit: z.coerce.number().int().min(1).max(500).default(50),
        before: z.coerce.number().int().positive().optional(),
      }),
      answer: DeadList,
      lists: "dead letters",
      act: ({ query }) => client.dead.list(query),
    }),
    route({
      id: "getDeadLetter",
      method: "get",
      path: "/api/dead/:seq",
      tag: "dead letters",
      summary: "One dead letter with its body, if it is text",
      role: "viewer",
      params: ofLetter,
      answer: DeadLetterShown,
      reads: ({ params }) => String(params.seq),
      act: ({ params }) => client.dead.show(params.seq),
    }),
    route({
      id: "retryDeadLetter",
      method: "post",
      path: "/api/dead/:seq/retry",
      tag: "dead letters",
      summary: "Publish the original message again, then remove the letter",
      role: "operator",
      params: ofLetter,
      body: z.strictObject({}),
      answer: DeadRetried,
      audit: ({ params }) => ({ target: String(params.seq) }),
      async act({ params }) {
        return { ok: true as const, ...(await client.dead.retry(params.seq)) };
      },
    }),
    route({
      id: "discardDeadLetter",
      method: "post",
      path: "/api/dead/:seq/discard",
      tag: "dead letters",
      summary: "Remove the letter for good",
      role: "admin",
      params: ofLetter,
      body: z.strictObject({}),
      answer: Done,
      audit: ({ params }) => ({ target: String(params.seq) }),
      async act({ params }) {
        await client.dead.discard(params.seq);
        return { ok: true as const };
      },
    }),
  ];
}
