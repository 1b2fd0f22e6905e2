/** Session types with a quota over the whole installation, for workers that are killed. */
import { call, defineSession } from "holdfast";

export const scarce = defineSession("scarce", {
  maxTotal: 2,
  leaseTtl: "1s",
  init: () => ({}),
  calls: { ping: call({ run: () => "pong" }) },
});
