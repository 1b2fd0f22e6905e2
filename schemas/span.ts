import { z } from "zod";

/** A duration as users write it: milliseconds, or `"250ms" "5s" "2m" "1h" "7d"`. */
export const Span = z.union([z.int().nonnegative(), z.string().max(32)]);
