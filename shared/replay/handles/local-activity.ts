/** `ctx.local`: a task whose target is the process that owns the instance. */
import type { AnyActivity, LocalOptions } from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import type { Context } from "./context.ts";

/**
 * A local activity shares its process with the turns of all other instances: by default it may not run for
 * long.
 */
const defaultLocalTimeout = "10s";

export function runLocal(
  context: Context,
  activity: AnyActivity | string,
  input: unknown,
  options: LocalOptions,
): Promise<unknown> {
  for (const name of Object.keys(options)) {
    if (!allowed.has(name)) return Promise.reject(notLocal(name));
  }
  if (typeof activity !== "string" && activity.rate) return Promise.reject(limited(activity.name));
  if (typeof activity !== "string" && activity.tags.length > 0) return Promise.reject(tagged(activity));
  const refusal = context.runner.needs(2, "ctx.local");
  if (refusal) return Promise.reject(refusal);
  const own = typeof activity === "string" ? undefined : activity.options;
  const { retry, startToClose = defaultLocalTimeout, scheduleToClose } = { ...own, ...options };
  return context.task(
    activity,
    input,
    {
      startToClose,
      ...(retry === undefined ? {} : { retry }),
      ...(scheduleToClose === undefined ? {} : { scheduleToClose }),
    },
    { kind: "local" },
    3,
  );
}

const allowed: ReadonlySet<string> = new Set(["retry", "startToClose", "scheduleToClose"]);

const tagged = ({ name, tags }: AnyActivity): HoldfastError =>
  new HoldfastError({
    code: "invalid_option",
    message: `activity "${name}" requires a worker with ${tags.join(", ")}, and ctx.local runs it on none; use ctx.run`,
  });

const limited = (name: string): HoldfastError =>
  new HoldfastError({
    code: "invalid_option",
    message: `activity "${name}" has a rate, which workers keep: run it with ctx.run, not with ctx.local`,
  });

const notLocal = (name: string): HoldfastError =>
  new HoldfastError({
    code: "invalid_option",
    message: `ctx.local has no option "${name}": it knows ${[...allowed].join(", ")}; use ctx.run for a worker`,
  });
