/**
 * What stands around the quoted parts of a page: a block that imports nothing is a part of a program, and this is the
 * rest of it. Names a page uses without defining them are declared here with the type they have in the text.
 */
const everywhere = `import assert from "node:assert/strict";
import { call, defineActivity, defineOrchestration, definePool, defineQuery, defineSession, defineUpdate } from "holdfast";
import type { Client, OrchestrationContext } from "holdfast";
import { z } from "zod";
declare const ctx: OrchestrationContext<unknown, { ready: boolean; balance: number }>;
declare const client: Client;
`;

/** Per page. What is not here needs nothing but the above. */
const more: Readonly<Record<string, string>> = {
  "flow-control": `declare const file: string; declare const customer: string; declare const tenant: string;
declare const order: string; declare const send: (ctx: unknown, mail: { customer: string }) => Promise<void>;`,
  "local-activities": `declare const item: string;
const lookUpPrice = defineActivity("look-up-price", { run: async (_ctx, item: string) => item.length });
const exchangeRate = defineActivity("exchange-rate", { run: async (_ctx, currency: string) => currency.length });`,
  "long-running": `interface Payment { amount: number }
declare const input: string; declare const city: string; declare const id: string;
declare const book: (payment: Payment) => Promise<void>;
const makeReport = defineActivity("make-report", { run: async (_ctx, input: string) => input });
const bookHotel = defineActivity("book-hotel", { run: async (_ctx, city: string) => ({ booking: city }) });
const cancelHotel = defineActivity("cancel-hotel", { run: async (_ctx, booked: { booking: string }) => booked.booking });
const bookFlight = defineActivity("book-flight", { run: async (_ctx, asked: { id: string; city: string }) => asked.id });
const cancelFlight = defineActivity("cancel-flight", { run: async (_ctx, id: string) => id });`,
  messages: `const Item = z.object({ name: z.string(), price: z.number() });
declare const items: z.infer<typeof Item>[];`,
  sessions: `declare const text: string; declare const texts: string[];
const classifier = defineSession("classifier", {
  config: z.object({ model: z.string() }),
  init: async () => ({ n: 0 }),
  calls: { classify: call({ input: z.string(), output: z.string(), run: async (_state, text) => text }) },
});
const chrome = defineSession("chrome", {
  init: async () => ({ at: "" }),
  calls: {
    open: call({ input: z.string(), run: async (state: { at: string }, at) => { state.at = at; } }),
    read: call({ run: async (state: { at: string }) => state.at }),
  },
});
const conversation = defineSession("conversation", {
  config: z.object({ model: z.string() }),
  init: async () => ({ turns: [] as string[] }),
  calls: { ask: call({ input: z.string(), output: z.string(), run: async (_state: { turns: string[] }, text) => text }) },
});
declare const sharedCopy: (bytes: Uint8Array) => SharedArrayBuffer;
declare const loadWeights: () => number[];
declare const search: (state: unknown, text: string) => string;`,
};

/** A part of a program, made whole. */
export const wholeProgram = (page: string, code: string): string =>
  /^import /m.test(code)
    ? `${/\bassert\./.test(code) ? 'import assert from "node:assert/strict";\n' : ""}${fromHere(page, code)}`
    : `${everywhere}${more[page.replace(/^docs\/(.*)\.md$/, "$1")] ?? ""}\n{\n${code.replaceAll(/^export (?=const)/gm, "")}\n}\nexport {};\n`;

/** The pages stand in docs/ and in examples/<name>/, the files that are checked elsewhere. */
const fromHere = (page: string, code: string): string =>
  page.startsWith("examples/")
    ? code.replaceAll('from "../', 'from "../../../examples/')
    : code.replaceAll('from "../examples/', 'from "../../../examples/');
