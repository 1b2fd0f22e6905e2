/** `npm run schemas` */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { jsonSchemaFiles } from "./json-schema.ts";

const folder = fileURLToPath(new URL("./json/", import.meta.url));
mkdirSync(folder, { recursive: true });
for (const [name, text] of jsonSchemaFiles()) writeFileSync(`${folder}${name}`, text);
