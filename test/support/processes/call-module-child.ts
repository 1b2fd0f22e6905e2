/** Loads a module as applications are loaded, calls what it exports, and prints the results as JSON. */
import { importUserModule } from "../../../shared/app-loading/load-app.ts";

const module = await importUserModule(process.argv[2] ?? "");
const results: Record<string, unknown> = {};
for (const [name, fn] of Object.entries(module)) if (typeof fn === "function") results[name] = await fn();
process.stdout.write(JSON.stringify(results));
process.exit(0);
