/** What the services of a failed test have logged stands below the failure: its processes and their logs end with it. */
import { afterAll, afterEach } from "vitest";
import { forgetLogs, lastLines } from "../processes/service-logs.ts";

afterEach(({ task }) => {
  if (task.result?.state === "fail") for (const lines of lastLines()) console.error(lines);
});
afterAll(forgetLogs);
