import { type Announce, announceFault } from "../shared/runtime/index.ts";

type StopReason = "SIGINT" | "SIGTERM" | "parent gone";

interface StopSignal {
  readonly asked: Promise<StopReason>;
  /** Aborted when the first signal arrives. */
  readonly signal: AbortSignal;
  dispose(): void;
}

/**
 * Resolves at the first reason to stop. A second signal ends the process at once, as a crash would;
 * everything is built to survive that.
 */
export function untilAskedToStop(
  announce: Announce,
  options: { runsForeignCode?: boolean } = {},
): StopSignal {
  let asked = false;
  const stopping = new AbortController();
  let resolve: (reason: StopReason) => void = () => undefined;
  const firstReason = new Promise<StopReason>((settle) => {
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
  // A rejected promise that user code did not handle must not end other work; it is announced as a fault.
  const onRejection = (error: unknown) =>
    announceFault({ announce }, "process", error, { code: "unhandled_rejection" });
  // After an uncaught exception the state of the process is unknown: exit and be started again. If users'
  // code runs here, a throwing timer of theirs says nothing about the engine, and other work must not pay for
  // it.
  const onException = (error: unknown) => {
    announceFault({ announce }, "process", error, { code: "uncaught_exception" });
    if (!options.runsForeignCode) process.exit(1);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  process.on("SIGHUP", onSignal);
  process.on("disconnect", onDisconnect);
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onException);
  return {
    asked: firstReason,
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
