/**
 * CPU time that capabilities cost a task: made with the task, asked for with its report. `npx tsx bench/costs/capability-cost.ts`
 */
import { randomBytes } from "node:crypto";
import { capabilityKey, KeyedCapabilities } from "../../shared/capabilities/index.ts";

const key = capabilityKey(randomBytes(32).toString("base64url"));
const capabilities = new KeyedCapabilities({ keys: () => [key], mayWrite: () => true, acceptMissing: false });
const tasks = 100_000;

for (const kind of ["task of a queue", "call of a session"] as const) {
  const epoch = kind === "task of a queue" ? undefined : 12_345;
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    for (let of = 0; of < tasks; of++) {
      const task = { instanceId: "order-0123456789abcdef", execution: 1, of, attempt: 1, epoch };
      const shown = capabilities.ofTask(task);
      if (epoch !== undefined) capabilities.ofDetails(task);
      if (capabilities.doubtTask(task, shown) !== undefined) throw new Error("its own capability is refused");
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / tasks;
  });
  process.stdout.write(`${kind}: ${rounds.map((us) => us.toFixed(1)).join(" ")} µs of CPU\n`);
}
