// An application in JavaScript: it needs no loader.
import { defineOrchestration } from "holdfast";
import { z } from "zod";

export const once = defineOrchestration("once", { input: z.object({ a: z.string() }), run: async () => 0 });
