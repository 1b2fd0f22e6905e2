/** A trip that is booked whole or not at all. Run it: npx holdfast dev --app examples/trip/app.ts */
import { defineActivity, defineOrchestration, HoldfastError, NonRetryableError } from "holdfast";
import { z } from "zod";

const Booking = z.object({ what: z.string(), number: z.string() });

export const book = defineActivity("book", {
  input: z.object({ what: z.string(), number: z.string() }),
  output: Booking,
  async run(_ctx, booking) {
    if (booking.what === "nothing")
      throw new NonRetryableError("there is nothing to book", { code: "sold_out" });
    return booking;
  },
});

export const cancelBooking = defineActivity("cancel-booking", { input: Booking, run: async () => null });

/** Books all of `what` and waits for the signal `paid`; cancels what it booked where one is not to be had, or not paid. */
export const trip = defineOrchestration("trip", {
  input: z.object({ what: z.array(z.string()), payWithinMs: z.number().default(60_000) }),
  output: z.array(Booking),
  run: (ctx, { what, payWithinMs }) =>
    ctx.saga(async (saga) => {
      const bookings = [];
      for (const one of what) {
        const booking = await saga.step(
          (inner) => inner.run(book, { what: one, number: ctx.uuid() }),
          (inner, booked) => inner.run(cancelBooking, booked),
        );
        bookings.push(booking);
      }
      const amount = await ctx.waitForSignal<number>("paid", { timeout: payWithinMs });
      if (amount < bookings.length)
        throw new HoldfastError({ code: "underpaid", message: `${amount} is not enough` });
      return bookings;
    }),
});
