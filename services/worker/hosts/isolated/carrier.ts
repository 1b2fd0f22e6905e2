import type { Failure } from "../../../../schemas/index.ts";
import type { FromHost, Post, ToHost } from "./protocol.ts";

/** How a carrier ended by itself. */
export interface Exit {
  /**
   * For people: exit code or signal, or the error that ended it. Messages put it after the name of the host.
   */
  how: string;
  code?: number | null;
}

export interface CarrierListener {
  message(message: FromHost): void;
  /** Called once, for any cause; also after `end`. */
  exit(exit: Exit): void;
}

/** Carries messages to a host and back, and can end it. */
export interface Carrier {
  readonly pid: number | undefined;
  readonly post: Post<ToHost>;
  listen(listener: CarrierListener): void;
  /** The last lines that the host wrote to stderr. */
  lastWords(): string;
  /** Asks the host to exit, then forces it. Resolves when nothing of it is left. */
  end(graceMs: number): Promise<void>;
}

/** The data that a host gets when it starts. */
export interface HostSetup {
  appPath: string;
  /** Number of threads to compute with. */
  threads: number;
  /** True: types that declare themselves not thread-safe are checked. */
  checksThreadSafety: boolean;
}

export const noAppFile = (type: string, isolation: string): Failure => ({
  code: "no_app_file",
  message: `session type ${type} has isolation "${isolation}", which loads the application again from its file, and this worker was given none`,
  retryable: false,
  details: { hint: "Name the module with --app <module> or HOLDFAST_APP." },
});
