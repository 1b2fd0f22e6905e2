/** The context given to user code: the same for a plain activity and for a call of a session. */
import type { ActivityTask } from "../../schemas/index.ts";
import type {
  ActivityContext,
  SessionView,
  StreamWriter,
  WorkerView,
  WorkLog,
} from "../../shared/definitions/index.ts";
import type { Announce } from "../../shared/runtime/index.ts";
import type { WorkerIdentity } from "./identity.ts";
import type { LazyAbort } from "./lazy-abort.ts";

interface WorkContextInit {
  task: ActivityTask;
  identity: Pick<WorkerIdentity, "workerId" | "host" | "resourceId">;
  abort: Pick<LazyAbort, "signal">;
  session: SessionView | undefined;
  lastHeartbeat: unknown;
  onHeartbeat: (details: unknown) => void;
  /** Called at the first write only: most work writes no stream. */
  openStream: () => StreamWriter;
  announce: Announce;
}

// A class with getters on its prototype: each task gets one, and most tasks use little of it.
export class WorkContext implements ActivityContext {
  readonly #init: WorkContextInit;
  #stream: StreamWriter | undefined;
  #log: WorkLog | undefined;

  constructor(init: WorkContextInit) {
    this.#init = init;
  }

  get instanceId(): string {
    return this.#init.task.instanceId;
  }

  get name(): string {
    return this.#init.task.name;
  }

  get attempt(): number {
    return this.#init.task.attempt;
  }

  get workerId(): string {
    return this.#init.identity.workerId;
  }

  get worker(): WorkerView {
    const { workerId: id, host, resourceId } = this.#init.identity;
    return { id, host, resourceId };
  }

  get signal(): AbortSignal {
    return this.#init.abort.signal;
  }

  get session(): SessionView | undefined {
    return this.#init.session;
  }

  get lastHeartbeat(): unknown {
    return this.#init.lastHeartbeat;
  }

  /** An arrow, so that `const { heartbeat } = ctx` works. */
  readonly heartbeat = (details?: unknown): void => this.#init.onHeartbeat(details);

  get stream(): StreamWriter {
    return (this.#stream ??= this.#init.openStream());
  }

  get log(): WorkLog {
    return (this.#log ??= workLog(this.#init));
  }
}

function workLog({ task, session, announce }: WorkContextInit): WorkLog {
  const about = {
    instanceId: task.instanceId,
    name: task.name,
    of: task.of,
    attempt: task.attempt,
    ...(session ? { sessionId: session.id } : {}),
  };
  const at =
    (level: "debug" | "info" | "warn" | "error") => (message: string, fields?: Record<string, unknown>) =>
      announce({ kind: "work.log", ...about, level, message, ...(fields ? { fields } : {}) });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
