/** Writes docs/api.md. Needs the build. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { describeApi, publicApi } from "./public-api.ts";

writeFileSync(resolve(import.meta.dirname, "../../../docs/api.md"), describeApi(publicApi()));
