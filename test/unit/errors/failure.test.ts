import { expect, it } from "vitest";
import { Failure } from "../../../schemas/index.ts";
import { activityErrorFrom, NonRetryableError, toFailure } from "../../../shared/errors/index.ts";

const cyclic = Object.assign(new Error("round"), { details: {} as Record<string, unknown> });
cyclic.details.self = cyclic;
cyclic.cause = cyclic;

const hostile = Object.defineProperties(new Error("x"), {
  message: {
    get() {
      throw new Error("no message for you");
    },
  },
});
const unprintable = Object.assign(new Error("x"), { message: Object.create(null) });
const trapped = new Proxy(new Error("x"), {
  get() {
    throw new Error("no property for you");
  },
  has() {
    throw new Error("no look for you");
  },
  getPrototypeOf() {
    throw new Error("no class for you");
  },
});
const revoked = Proxy.revocable({}, {});
revoked.revoke();

it.each([
  ["a text", "as a text", { code: "thrown_value", message: 'threw "as a text"' }],
  ["nothing", undefined, { code: "thrown_value", message: "threw undefined" }],
  ["null", null, { code: "thrown_value", message: "threw null" }],
  ["a symbol", Symbol("s"), { code: "thrown_value" }],
  ["a big integer", 10n, { code: "thrown_value" }],
  ["an object", { a: 1 }, { code: "thrown_value", message: 'threw {"a":1}' }],
  ["an object without a prototype", Object.create(null), { code: "thrown_value" }],
  ["an error with cycles", cyclic, { code: "Error", message: "round" }],
  ["an error with a code", new NonRetryableError("no", { code: "mine" }), { code: "mine", retryable: false }],
  ["an error that throws when read", hostile, { code: "thrown_value" }],
  ["an error whose message is no text", unprintable, { code: "thrown_value" }],
  ["an error behind traps", trapped, { code: "thrown_value" }],
  ["a revoked proxy", revoked.proxy, { code: "thrown_value" }],
  ["an error with a name that is no code", Object.assign(new Error("x"), { name: "a b" }), { code: "Error" }],
])("makes data of %s", (_what, thrown, expected) => {
  const failure = toFailure(thrown);
  expect(failure).toMatchObject(expected);
  expect(Failure.parse(JSON.parse(JSON.stringify(failure)))).toEqual(failure);
});

it("leaves details out that are nested deeper than a report can be", () => {
  const nested = (levels: number): unknown => (levels === 0 ? 0 : [nested(levels - 1)]);
  const detailsOf = (levels: number) =>
    toFailure(Object.assign(new Error("x"), { details: nested(levels) })).details;
  expect(detailsOf(90)).toEqual(nested(90));
  expect(detailsOf(1000)).toBeUndefined();
});

it("keeps causes to a depth, and texts to a length", () => {
  let error = new Error("deepest");
  for (let i = 0; i < 50; i++) error = new Error("x".repeat(20_000), { cause: error });
  const failure = toFailure(error);
  expect(JSON.stringify(failure).length).toBeLessThan(200_000);
  let depth = 0;
  for (let at: Failure | undefined = failure; at; at = at.cause) depth++;
  expect(depth).toBeLessThan(10);
});

it("keeps the stack of where an error was thrown, whatever the language", () => {
  const stack = 'Traceback (most recent call last):\n  File "model.py", line 3, in embed\nValueError: no';
  const cause = { code: "KeyError", message: "k", retryable: true, stack: "Traceback of the cause" };
  const error = activityErrorFrom({ code: "ValueError", message: "no", retryable: true, stack, cause });
  expect(error).toMatchObject({ code: "ValueError", stack, cause: { stack: "Traceback of the cause" } });
});
