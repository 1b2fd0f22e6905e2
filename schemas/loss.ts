/**
 * Why a session loses its holder, and what its policy does about it: one row per reason and per policy. A
 * reason or a policy without a row does not compile.
 */
import { z } from "zod";

/** Why a session lost its holder. */
export const LossReason = z.enum([
  "expired",
  "aborted",
  "drained",
  "evicted",
  "idle",
  "hung",
  "crashed",
  "recycled",
  "execution_timeout",
]);
export type LossReason = z.infer<typeof LossReason>;

/** What its holder said of it. Users' code may have written it: `ctx.session.abort(why)`, the error of a host. */
export const LossDetail = z.string();

interface LossReasonRow {
  /** The holder released the session in good order. No call is blamed, and a checkpoint carries the state on. */
  planned: boolean;
  /** The session ends, whatever its loss policy is. */
  endsSession: boolean;
}

const died = { planned: false, endsSession: false };
const letGo = { planned: true, endsSession: false };

/** What each reason means. */
export const lossReasons: Readonly<Record<LossReason, LossReasonRow>> = {
  expired: died,
  aborted: died,
  drained: letGo,
  evicted: died,
  // Written by no version since 0.1.0; a history may have it.
  idle: died,
  hung: died,
  crashed: died,
  recycled: letGo,
  execution_timeout: { planned: false, endsSession: true },
};

/** What a session does when its holder is lost. */
export const OnLost = z.enum(["fail", "reclaim", "rebuild", "restore"]);
export type OnLost = z.infer<typeof OnLost>;

interface LossPolicy {
  /** After an unplanned loss the session asks for another worker; otherwise its calls fail with `session_lost`. */
  asksAgain: boolean;
  /** After an unplanned loss the next holder starts from the last checkpoint. */
  restores: boolean;
  /** If `init` of the next holder failed, the holder after it gets the checkpoint again. */
  restoresAfterFailedInit: boolean;
  /** The declared activity runs on every new holder before anything else does. */
  rebuilds: boolean;
  /** What the session type or the opening must provide, as named in the error. */
  needs?: "recovery.rebuild" | "checkpoint and restore";
}

/** What each policy does. */
export const lossPolicies: Readonly<Record<OnLost, LossPolicy>> = {
  fail: { asksAgain: false, restores: false, restoresAfterFailedInit: true, rebuilds: false },
  reclaim: { asksAgain: true, restores: false, restoresAfterFailedInit: false, rebuilds: false },
  rebuild: {
    asksAgain: true,
    restores: false,
    restoresAfterFailedInit: false,
    rebuilds: true,
    needs: "recovery.rebuild",
  },
  restore: {
    asksAgain: true,
    restores: true,
    restoresAfterFailedInit: true,
    rebuilds: false,
    needs: "checkpoint and restore",
  },
};
