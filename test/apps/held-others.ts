/** A worker's application that knows another type than `held.ts`, as a newer or an older deployment would. */
import { call, defineSession } from "holdfast";

export const unserved = defineSession("unserved", {
  init: () => ({}),
  calls: { ping: call({ run: () => "pong" }) },
});
