/**
 * The days of the simulation in one file, for processes that live thousands of them: loading and running each module through
 * the test runner costs more than the days do. A guard can be taken out of the engine on the way (mutations.ts).
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { withoutGuard } from "./mutations.ts";

/** Files beside a module are found by where it was before it was bundled. */
const addresses = {
  name: "module-addresses",
  transform: (code: string, id: string) =>
    code.includes("import.meta.url")
      ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      : undefined,
};

/** Writes the file into the folder and returns its path. */
export async function bundleDays(folder: string, guard?: string): Promise<string> {
  const bundle = await rolldown({
    input: join(import.meta.dirname, "search-worker.ts"),
    platform: "node",
    plugins: [withoutGuard(guard), addresses],
    transform: { target: "node20" },
    logLevel: "silent",
  });
  const file = join(folder, "days.mjs");
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  return file;
}
