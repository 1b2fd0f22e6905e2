import { pathToFileURL } from "node:url";
import { runGateway } from "./run-gateway.ts";

export { runGateway };

// The command line loads this file too and starts it itself.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await runGateway(process.env);
