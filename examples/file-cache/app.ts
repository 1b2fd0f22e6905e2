/**
 * Fetch, process, deliver, where the file is: three activities that must meet on one disk.
 * Run it: npx holdfast dev --app examples/file-cache/app.ts
 */
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type ActivityContext, defineActivity, defineOrchestration, SessionLostError } from "holdfast";
import { z } from "zod";

const Bytes = z.object({ bytes: z.int() });

export const downloadFile = defineActivity("download-file", {
  input: z.url(),
  output: Bytes,
  async run(ctx, url) {
    const { raw } = await filesOf(ctx);
    const response = await fetch(url, { signal: ctx.signal });
    if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
    await whole(raw, (part) => pipeline(Readable.from(response.body ?? []), createWriteStream(part)));
    return { bytes: (await stat(raw)).size };
  },
});

export const compressFile = defineActivity("compress-file", {
  output: Bytes,
  run: async (ctx) => ({ bytes: (await stat(await compressed(ctx))).size }),
});

export const uploadFile = defineActivity("upload-file", {
  input: z.url(),
  output: Bytes,
  async run(ctx, url) {
    // A file made before a loss is made again: the rebuild brought back what it is made of.
    const body = await readFile(await compressed(ctx));
    const response = await fetch(url, { method: "PUT", body, signal: ctx.signal });
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return { bytes: body.byteLength };
  },
});

export const removeFiles = defineActivity("remove-files", {
  run: async (ctx) => rm((await filesOf(ctx)).folder, { recursive: true, force: true }),
});

/**
 * `{source, target}` → what went through. A bare session holds on to a worker and nothing else; the files are its
 * state. If the worker is lost another one fetches the file again, once, and the step that was open is repeated.
 */
export const processFile = defineOrchestration("process-file", {
  input: z.object({ source: z.url(), target: z.url() }),
  output: z.object({ downloaded: z.int(), uploaded: z.int() }),
  async run(ctx, { source, target }) {
    await using session = await ctx.openSession({
      leaseTtl: "3s",
      onLost: "rebuild",
      recovery: { rebuild: { activity: downloadFile, input: source } },
    });
    const downloaded = await session.run(downloadFile, source);
    ctx.setStatus({ step: "downloaded", ...downloaded });
    const made = await session.run(compressFile, undefined);
    ctx.setStatus({ step: "compressed", ...made });
    const uploaded = await session.run(uploadFile, target);
    await session.run(removeFiles, undefined);
    return { downloaded: downloaded.bytes, uploaded: uploaded.bytes };
  },
});

/** By worker and session: a worker started again is another one, and its cache is empty. */
async function filesOf({ session, workerId }: ActivityContext) {
  if (session === undefined) throw new Error("this activity works on the files of a session");
  const folder = join(tmpdir(), "holdfast-files", workerId, session.id);
  await mkdir(folder, { recursive: true });
  return { folder, raw: join(folder, "raw"), gz: join(folder, "raw.gz") };
}

async function compressed(ctx: ActivityContext): Promise<string> {
  const { raw, gz } = await filesOf(ctx);
  if (existsSync(gz)) return gz;
  if (!existsSync(raw)) throw new SessionLostError("the file is not in this worker's cache");
  await whole(gz, (part) => pipeline(createReadStream(raw), createGzip(), createWriteStream(part)));
  return gz;
}

/** A file is there whole or not at all, whenever its writer ends. */
async function whole(path: string, write: (part: string) => Promise<void>): Promise<void> {
  const part = `${path}.part`;
  await write(part);
  await rename(part, path);
}
