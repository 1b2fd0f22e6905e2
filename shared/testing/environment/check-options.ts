/** Refuses by name what would otherwise never take effect: then a test passes that has tested nothing. */
import { type AnySession, type App, nearestOf, refuseUnknownOptions } from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { noFaults } from "../memory/index.ts";
import { faultPoints, type TestEnvironmentOptions } from "./options.ts";

const optionNames: Readonly<Record<keyof TestEnvironmentOptions, true>> = {
  ...{ app: true, seed: true, nats: true, startsAt: true, timeZone: true },
  ...{ workers: true, orchestrators: true, alwaysReplay: true, faults: true },
};

export function checkOptions(options: TestEnvironmentOptions): void {
  const { app, faults, timeZone } = options ?? {};
  if (typeof app !== "object" || app === null)
    throw invalid('testEnvironment needs { app }: `import * as app from "./app.ts"`');
  refuseUnknownOptions("testEnvironment", options, optionNames);
  requireWhole("seed", options.seed, Number.MIN_SAFE_INTEGER);
  for (const name of ["workers", "orchestrators"] as const) requireWhole(name, options[name], 0);
  if (typeof faults === "object") refuseUnknownOptions("faults", faults, { ...noFaults });
  else if (faults !== undefined) requireOneOf("faults", faults, ["none", "some"]);
  if (timeZone !== undefined && !isTimeZone(timeZone))
    throw invalid(`timeZone: "${timeZone}" is no time zone; an example is "Europe/Berlin"`);
}

export function checkKill(app: App, session: string | AnySession, at: string | undefined, count: number) {
  if (typeof session !== "string") requireOneOf("env.kill", session.name, [...app.sessions.keys()]);
  if (at !== undefined) requireOneOf("env.kill at", at, Object.keys(faultPoints));
  requireWhole("env.kill count", count, 1);
}

export function checkFake(app: App, activity: string, code: unknown): void {
  requireOneOf("env.fake", activity, [...app.activities.keys()]);
  requireFunction(`env.fake of ${activity}`, code);
}

export function checkSessionFake(app: App, type: string, calls: object): void {
  requireOneOf("env.fakeSession", type, [...app.sessions.keys()]);
  const known = Object.keys(app.sessions.get(type)?.calls ?? {});
  for (const [name, code] of Object.entries(calls)) {
    requireOneOf(`env.fakeSession of ${type}`, name, known);
    requireFunction(`env.fakeSession of ${type}, ${name}`, code);
  }
}

export function checkSeeds(seeds: number | readonly number[]): void {
  if (typeof seeds === "number") requireWhole("seeds", seeds, 1);
  else if (seeds.length === 0) throw invalid("seeds: none are given");
}

function requireWhole(name: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  const range = least > Number.MIN_SAFE_INTEGER ? ` of at least ${least}` : "";
  throw invalid(`${name}: ${String(value)} is no whole number${range}`);
}

function requireFunction(what: string, code: unknown): void {
  if (code !== undefined && typeof code !== "function") throw invalid(`${what}: a fake is a function`);
}

function requireOneOf(what: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  const nearest = nearestOf(name, names);
  const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  throw invalid(`${what}: there is no "${name}" among ${names.join(", ") || "nothing"}${meant}`);
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

const invalid = (message: string): HoldfastError => new HoldfastError({ code: "invalid_option", message });
