/** Checks the flow options and the delay of a start, and makes the headers of a start with limits. */
import { FlowOptions, needsHeader } from "../../../schemas/index.ts";
import { headerNames } from "../../bus/index.ts";
import { refuseUnknownOptions } from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { type Duration, parseDuration } from "../../runtime/index.ts";

/** Headers of a start with limits. Orchestrators that do not know limits leave it to newer ones. */
export const flowHeaders = (flow: FlowOptions): Record<string, string> => ({
  [headerNames.flow]: JSON.stringify(flow),
  [needsHeader]: "2",
});

/** Throws `invalid_option` with the option's name. */
export function parseFlow(flow: unknown): FlowOptions {
  const parsed = FlowOptions.safeParse(flow);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(
      `flow${issue?.path.length ? `.${issue.path.join(".")}` : ""}: ${issue?.message ?? "is none"}`,
    );
  }
  const options = parsed.data;
  refuseUnknownOptions("flow", options, FlowOptions.shape);
  for (const part of parts) {
    const given = options[part];
    if (typeof given === "object") refuseUnknownOptions(`flow.${part}`, given, partNames[part]);
  }
  // "singleton: false" sets no limit.
  const isSet = (control: (typeof controls)[number]) =>
    options[control] !== undefined && options[control] !== false;
  for (const [one, other] of contradictions) {
    if (isSet(one) && isSet(other))
      throw invalid(`flow has both ${one} and ${other}: a start has one of them`);
  }
  if (!controls.some(isSet)) throw invalid(`flow sets no limit: it needs one of ${controls.join(", ")}`);
  positive(options.rate?.per, "flow.rate.per");
  const periodMs = positive(options.debounce?.period, "flow.debounce.period");
  const maxWaitMs = positive(options.debounce?.maxWait, "flow.debounce.maxWait");
  if (maxWaitMs !== undefined && maxWaitMs < (periodMs ?? 0))
    throw invalid(
      `flow.debounce: maxWait (${maxWaitMs} ms) is shorter than period (${periodMs} ms): the period would never end`,
    );
  positive(options.throttle?.period, "flow.throttle.period");
  return options;
}

const parts = ["concurrency", "rate", "debounce", "throttle"] as const;
const partNames = {
  concurrency: { limit: true, onBusy: true },
  rate: { limit: true, per: true, burst: true },
  debounce: { period: true, maxWait: true },
  throttle: { period: true },
} as const;
const contradictions = [
  ["singleton", "concurrency"],
  ["debounce", "throttle"],
] as const;
const controls = ["concurrency", "singleton", "rate", "debounce", "throttle"] as const;

function positive(value: number | string | undefined, what: string): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseDuration(value, what);
  if (ms < 1) throw invalid(`${what} must be at least 1 ms`);
  return ms;
}

/** Returns milliseconds; throws if the delay is not a duration or is negative. */
export function parseDelay(delay: Duration | string): number {
  return parseDuration(delay, "delay");
}

const invalid = (message: string) => new HoldfastError({ code: "invalid_option", message });
