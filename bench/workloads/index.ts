import type { Workload } from "../workload.ts";
import { loss } from "./failures/loss.ts";
import { lostServer } from "./failures/lost-server.ts";
import { provedLoss } from "./failures/proved-loss.ts";
import { recovery } from "./failures/recovery.ts";
import { growth } from "./growth.ts";
import { local } from "./local.ts";
import { memory } from "./memory.ts";
import { messages } from "./messages.ts";
import { schedules } from "./schedules.ts";
import { claim } from "./sessions/claim.ts";
import { hosts } from "./sessions/hosts.ts";
import { keyed } from "./sessions/keyed.ts";
import { renewal } from "./sessions/renewal.ts";
import { w4 } from "./sessions/w4-sessions.ts";
import { warm } from "./sessions/warm.ts";
import { startUp } from "./start-up.ts";
import { twoOrchestrators } from "./two-orchestrators.ts";
import { w1 } from "./w1-sequence.ts";
import { w2 } from "./w2-parallel.ts";
import { w3 } from "./w3-instances.ts";
import { w5 } from "./w5-signal.ts";
import { w6 } from "./w6-inference.ts";
import { w7 } from "./w7-replay.ts";

/**
 * In the order they run. W3 comes after the workloads that share its server, because it leaves a thousand
 * streams behind. So does loss, because it kills workers.
 */
export const workloads: readonly Workload[] = [
  w1,
  local,
  w2,
  w5,
  messages,
  w7,
  w3,
  growth,
  twoOrchestrators,
  schedules,
  memory,
  startUp,
  warm,
  keyed,
  hosts,
  claim,
  w4,
  renewal,
  loss,
  provedLoss,
  recovery,
  w6,
  lostServer,
];
