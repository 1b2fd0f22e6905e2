import type { Failure } from "../../../schemas/index.ts";
import type { FromHost, Post, ToHost } from "./protocol.ts";

/** How a carrier ended by itself. */
export interface Exit {
  /** For people: exit code or signal, or the error that ended it. Follows the name of the host. */
  how: string;
  code?: number | null;
}

export interface CarrierListener {
  message(message: FromHost): void;
  /** Once, whatever the cause; after `end` too. */
  exit(exit: Exit): void;
}

/** What carries messages to a host and back, and can end it. */
export interface Carrier {
  readonly pid: number | undefined;
  readonly post: Post<ToHost>;
  listen(listener: CarrierListener): void;
  /** The last lines it wrote to stderr. */
  lastWords(): string;
  /** Asks it to go, then makes it. Resolves when nothing of it is left. */
  end(graceMs: number): Promise<void>;
}

/** What a host is told at its birth. */
export interface HostSetup {
  appPath: string;
  /** To compute with. */
  threads: number;
  /** Types that say they are not thread-safe are held to it. */
  checksThreadSafety: boolean;
}

export const noAppFile = (type: string, isolation: string): Failure => ({
  code: "no_app_file",
  message: `session type ${type} has isolation "${isolation}", which loads the application again from its file, and this worker was given none`,
  retryable: false,
  details: { hint: "Name the module with --app <module> or HOLDFAST_APP." },
});
