/** Pools that the application declares: the installation keeps them, warm before the first use. */
import { HoldfastError } from "../errors/index.ts";
import type { ConfiguredArguments } from "./arguments.ts";
import { brand } from "./brand.ts";
import { poolOptionNames, refuseUnknownOptions } from "./option-names.ts";
import { validate } from "./schema.ts";
import type { AnySession, ConfigOf } from "./session.ts";
import type { PoolOptions } from "./session-handles.ts";

/** A pool that the installation keeps. */
export interface PoolDefinition {
  readonly [brand]: "pool";
  readonly type: AnySession;
  readonly options: PoolOptions;
}

/**
 * A pool that is warm at boot: its `min` members are loaded when the application is deployed and stay, even
 * while no instance uses it. `ctx.usePool(type, …)` with the same config (and `id`) uses it,
 * `client.pool(type, …)` too.
 *
 * @example
 * ```ts
 * export const models = definePool(classifier, { config: { model: "spam-use" }, min: 2, max: 8 });
 * ```
 */
export function definePool<D extends AnySession>(
  type: D,
  ...[options = {} as PoolOptions<ConfigOf<D>>]: ConfiguredArguments<ConfigOf<D>, PoolOptions<ConfigOf<D>>>
): PoolDefinition {
  return { [brand]: "pool", type, options: checkedPool(`definePool("${type.name}")`, type, options) };
}

/** Throws if options of a pool are wrong. */
export function checkedPool(
  what: string,
  type: AnySession | undefined,
  options: PoolOptions,
): PoolOptions & { min: number; max: number } {
  refuseUnknownOptions(what, options, poolOptionNames);
  if (type) validate(type.config, options.config, "invalid_config", `config of pool "${type.name}"`);
  const { min = 1, max = Math.max(4, min) } = options;
  if (!Number.isInteger(min) || !Number.isInteger(max) || min < 0 || max < 1 || min > max)
    throw new HoldfastError({
      code: "invalid_option",
      message: `${what}: min (${min}) and max (${max}) must be whole numbers, 0 <= min <= max, max >= 1`,
    });
  return { ...options, min, max };
}
