import { pathToFileURL } from "node:url";
import { runGateway } from "./run-gateway.ts";

export { runGateway };

// The command line imports this file too and starts the gateway itself.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) void runGateway(process.env);
