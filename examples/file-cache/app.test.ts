/** Three activities that must meet on one disk, without a disk. Run it: npx vitest run examples/file-cache */
import { SessionLostError } from "holdfast";
import { type TestEnvironment, testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

const source = "https://example.org/raw";
const target = "https://example.org/compressed";

/** A worker has only what it fetched itself. */
function fakeDisks(env: TestEnvironment): { uploads: number } {
  const disks = new Set<string>();
  const seen = { uploads: 0 };
  const onDisk = (workerId: string) => {
    if (!disks.has(workerId)) throw new SessionLostError("the file is not in this worker's cache");
  };
  env.fake(app.downloadFile, (_url, { workerId }) => {
    disks.add(workerId);
    return { bytes: 100 };
  });
  env.fake(app.compressFile, (_input, { workerId }) => {
    onDisk(workerId);
    return { bytes: 10 };
  });
  env.fake(app.uploadFile, (_url, { workerId }) => {
    onDisk(workerId);
    seen.uploads++;
    return { bytes: 10 };
  });
  env.fake(app.removeFiles, () => undefined);
  return seen;
}

test("the file goes through, wherever the worker with the disk dies", async () => {
  await using env = await testEnvironment({ app });
  const places = await env.everyFaultPoint(async (each) => {
    const seen = fakeDisks(each);
    const handle = await each.client.start(app.processFile, { source, target });
    expect(await handle.result()).toEqual({ downloaded: 100, uploaded: 10 });
    expect(seen.uploads).toBeGreaterThanOrEqual(1);
  });
  expect(places).toContain("after-call");
});
