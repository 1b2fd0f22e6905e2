import type { Announce } from "../shared/runtime/index.ts";

export type StopReason = "SIGINT" | "SIGTERM" | "parent gone";

export interface StopSignal {
  readonly told: Promise<StopReason>;
  /** Aborted at the same moment. */
  readonly signal: AbortSignal;
  dispose(): void;
}

/**
 * Resolves at the first reason to stop. A second signal means now: the process ends without waiting, as a crash would,
 * and everything is built to survive that.
 */
export function untilToldToStop(announce: Announce, options: { runsForeignCode?: boolean } = {}): StopSignal {
  let asked = false;
  const stopping = new AbortController();
  let resolve: (reason: StopReason) => void = () => undefined;
  const told = new Promise<StopReason>((settle) => {
    resolve = (reason) => {
      stopping.abort();
      settle(reason);
    };
  });
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) process.exit(130);
    asked = true;
    resolve(signal === "SIGINT" ? "SIGINT" : "SIGTERM");
  };
  const onDisconnect = () => {
    asked = true;
    resolve("parent gone");
  };
  // A promise somebody's code forgot must not take the others down; it is said, loudly.
  const onRejection = (error: unknown) =>
    announce({ kind: "fault", where: "process", code: "unhandled_rejection", message: String(error), error });
  // After an exception nobody caught the state of the process is unknown: die and be started again. Where users' code
  // runs, a timer of theirs that throws says nothing about ours, and others' work must not pay for it.
  const onException = (error: unknown) => {
    announce({ kind: "fault", where: "process", code: "uncaught_exception", message: String(error), error });
    if (!options.runsForeignCode) process.exit(1);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  process.on("SIGHUP", onSignal);
  process.on("disconnect", onDisconnect);
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return {
    told,
    signal: stopping.signal,
    dispose() {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
      process.off("SIGHUP", onSignal);
      process.off("disconnect", onDisconnect);
      process.off("unhandledRejection", onRejection);
      process.off("uncaughtException", onException);
      // The channel to a parent would keep the process alive.
      if (process.connected) process.disconnect?.();
    },
  };
}
