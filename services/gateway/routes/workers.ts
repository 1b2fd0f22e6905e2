/** Workers: list, describe, drain. */
import { z } from "zod";
import { WorkerId } from "../../../schemas/index.ts";
import { notFound } from "../http/problem.ts";
import { type RouteSpec, route } from "../http/route.ts";
import { workerRow } from "../live/live-view.ts";
import { WorkerRow } from "../live/rows.ts";
import type { GatewayParts } from "./context.ts";

const tag = "workers";
export const WorkerList = z.strictObject({ rows: z.array(WorkerRow) });
export const WorkerAccepted = z.strictObject({ ok: z.literal(true), workerId: WorkerId });

const ofWorker = z.object({ id: WorkerId });

export function workerRoutes({ client, live }: GatewayParts): RouteSpec[] {
  const known = (id: string) => {
    const info = live.worker(id);
    if (!info) throw notFound("worker", id);
    return workerRow(info);
  };
  return [
    route({
      id: "listWorkers",
      method: "get",
      path: "/api/workers",
      tag,
      summary: "Workers that are alive",
      role: "viewer",
      answer: WorkerList,
      lists: "workers",
      act: () => ({ rows: live.workers().map(workerRow) }),
    }),
    route({
      id: "getWorker",
      method: "get",
      path: "/api/workers/:id",
      tag,
      summary: "One worker",
      role: "viewer",
      params: ofWorker,
      answer: WorkerRow,
      reads: ({ params }) => params.id,
      act: ({ params }) => known(params.id),
    }),
    route({
      id: "drainWorker",
      method: "post",
      path: "/api/workers/:id/drain",
      tag,
      summary: "Let the worker finish what it has and take nothing new; its sessions move on (S13)",
      role: "admin",
      params: ofWorker,
      body: z.strictObject({}),
      answer: WorkerAccepted,
      status: 202,
      audit: ({ params }) => ({ target: params.id }),
      async act({ params }) {
        known(params.id);
        await client.workers.drain(params.id);
        return { ok: true as const, workerId: params.id };
      },
    }),
  ];
}
