import { writeFileSync } from "node:fs";
import { licencePage } from "./licences.ts";

writeFileSync(new URL("../../docs/licences.md", import.meta.url), licencePage());
