/**
 * Source design S2, Cadence's "Resource-Specific Tasklist": a session is tied to a resource of one worker, here its disk.
 * If the worker dies the session has failed, and the workflow decides; a token leads a later run back to the same resource.
 */
import {
  type ActivityContext,
  defineActivity,
  defineOrchestration,
  isSessionLost,
  type OrchestrationContext,
} from "holdfast";
import { z } from "zod";

export const journal: string[] = [];

/** The disks: each resource has its own. */
export const disks = new Map<string, Map<string, string>>();

function diskOf({ worker }: ActivityContext): Map<string, string> {
  const resource = worker?.resourceId ?? "none";
  const disk = disks.get(resource) ?? new Map<string, string>();
  disks.set(resource, disk);
  return disk;
}

export const downloadFile = defineActivity("DownloadFileActivity", {
  input: z.string(),
  run: (ctx, filename) => {
    journal.push(`download ${filename}`);
    diskOf(ctx).set(filename, "raw");
  },
});
export const processFile = defineActivity("ProcessFileActivity", {
  input: z.string(),
  run: (ctx, filename) => {
    const disk = diskOf(ctx);
    if (!disk.has(filename)) throw new Error(`${filename} is not on this disk`);
    if (filename === "broken") throw new Error("cannot be processed");
    disk.set(filename, "processed");
  },
});
export const uploadFile = defineActivity("UploadFileActivity", {
  input: z.string(),
  run: (ctx, filename) => `${filename}: ${diskOf(ctx).get(filename)}`,
});

/** The function the design recommends to write: one session, completed however it ends (`defer CompleteSession`). */
async function onOneWorker(ctx: OrchestrationContext, filename: string): Promise<string> {
  await using session = await ctx.openSession({ creationTimeout: "1m", executionTimeout: "1h" });
  await session.run(downloadFile, filename);
  await ctx.sleep("10s"); // long enough for a worker to die
  await session.run(processFile, filename, { retry: { maxAttempts: 1 } });
  return await session.run(uploadFile, filename);
}

/** `ErrSessionFailed` differs from the activity's own error: only the former is worth a new session. */
export const processOneFile = defineOrchestration("s2-process-one-file", {
  input: z.string(),
  async run(ctx, filename) {
    for (let attempt = 1; ; attempt++) {
      try {
        return { attempt, result: await onOneWorker(ctx, filename) };
      } catch (error) {
        if (!isSessionLost(error) || attempt === 3) throw error;
      }
    }
  },
});

/** `GetSessionInfo` and `RecreateSession`: the second run creates its session on the disk of the first. */
export const inTwoRuns = defineOrchestration("s2-in-two-runs", {
  input: z.object({ filename: z.string(), recreateToken: z.string().optional(), was: z.string().optional() }),
  async run(ctx, { filename, recreateToken, was }): Promise<{ was: string; is: string; result: string }> {
    if (recreateToken === undefined) {
      const session = await ctx.openSession();
      await session.run(downloadFile, filename);
      const next = { filename, recreateToken: session.token(), was: session.info.resourceId };
      await session.close();
      return ctx.continueAsNew(next);
    }
    await using session = await ctx.recreateSession(recreateToken);
    await session.run(processFile, filename);
    const result = await session.run(uploadFile, filename);
    return { was: was ?? "", is: session.info.resourceId ?? "", result };
  },
});
