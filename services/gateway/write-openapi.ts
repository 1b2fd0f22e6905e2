/** Writes docs/openapi.json: `npm run openapi`. A test fails when it is not current. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageDir, packageVersion } from "../version.ts";
import { allRoutes, type GatewayParts, openApiOf } from "./routes/index.ts";

// Routes use their parts only when they act.
const document = openApiOf(allRoutes({} as GatewayParts), packageVersion());
writeFileSync(join(packageDir(), "docs", "openapi.json"), `${JSON.stringify(document, null, 2)}\n`);
