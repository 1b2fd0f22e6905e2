/** Loads applications where no test runner stands between the modules and Node. Prints one JSON line for each path. */
import { loadApp } from "../../../shared/app-loading/load-app.ts";

for (const path of process.argv.slice(2)) {
  const outcome = await loadApp(path).then(
    (app) => ({ orchestrations: [...app.orchestrations.keys()], activities: [...app.activities.keys()] }),
    (error: { code: string; kind: string; message: string }) => ({
      code: error.code,
      kind: error.kind,
      message: error.message,
    }),
  );
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
process.exit(0);
