/** Reads settings from the environment; every complaint names the variable, its value and what would do. */
import { tokenPattern, tokenRule } from "../../schemas/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import { parseDuration } from "../../shared/runtime/index.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

interface Range {
  fallback: number;
  min: number;
  max: number;
}

export type Settings = ReturnType<typeof readSettings>;

export function readSettings(env: Environment, prefix: string) {
  const known = new Set<string>();
  const read = (name: string): string | undefined => {
    known.add(name);
    const value = env[name]?.trim();
    return value === "" ? undefined : value;
  };

  const settings = {
    text: read,

    token(name: string): string | undefined {
      const value = read(name);
      if (value !== undefined && !tokenPattern.test(value)) refuse(name, value, `must be ${tokenRule}`);
      return value;
    },

    /** Names separated by commas. */
    tokens(name: string): string[] | undefined {
      const parts = split(read(name));
      for (const part of parts ?? []) {
        if (!tokenPattern.test(part)) refuse(name, part, `each must be ${tokenRule}`);
      }
      return parts && [...new Set(parts)];
    },

    /** `vram=24,slots=2`. */
    amounts(name: string): Record<string, number> {
      const amounts: Record<string, number> = {};
      for (const part of split(read(name)) ?? []) {
        const match = /^([A-Za-z0-9_-]{1,128})=(\d+(?:\.\d+)?)$/.exec(part);
        if (!match?.[1]) refuse(name, part, "write name=number, separated by commas");
        else amounts[match[1]] = Number(match[2]);
      }
      return amounts;
    },

    count(name: string, range: Range): number {
      const value = read(name);
      if (value === undefined) return range.fallback;
      if (!/^\d+$/.test(value)) refuse(name, value, "must be a whole number");
      return inRange(name, value, Number(value), range, String);
    },

    /** `250ms 5s 2m 1h 7d`, or milliseconds. */
    duration(name: string, range: Range & { wholeSeconds?: boolean }): number {
      const value = read(name);
      if (value === undefined) return range.fallback;
      const ms = inRange(name, value, durationOf(name, value), range, (bound) => `${bound} ms`);
      if (range.wholeSeconds && ms % 1000 !== 0) refuse(name, value, "must be whole seconds");
      return ms;
    },

    /** A misspelt variable is silence where a setting was meant. Call after all have been read. */
    refuseUnknown(): void {
      for (const name of Object.keys(env)) {
        if (!name.startsWith(prefix) || known.has(name) || env[name] === undefined) continue;
        throw new Fault("config", {
          code: "unknown_setting",
          message: `${name} is not a setting`,
          hint: `Known are ${[...known].sort().join(", ")}.`,
        });
      }
    },
  };
  return settings;
}

const split = (value: string | undefined): string[] | undefined =>
  value
    ?.split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

function durationOf(name: string, value: string): number {
  try {
    return parseDuration(value, name);
  } catch {
    return refuse(name, value, 'must be a duration such as "250ms", "5s" or "2m"');
  }
}

function inRange(
  name: string,
  text: string,
  value: number,
  range: Range,
  show: (bound: number) => string,
): number {
  if (value < range.min) refuse(name, text, `must be at least ${show(range.min)}`);
  if (value > range.max) refuse(name, text, `must be at most ${show(range.max)}`);
  return value;
}

function refuse(name: string, value: string, rule: string): never {
  throw new Fault("config", { code: "invalid_setting", message: `${name}=${value}: ${rule}` });
}
