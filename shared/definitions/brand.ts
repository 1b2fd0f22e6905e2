import { tokenPattern, tokenRule } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";

/** A registered symbol, so that two copies of this package recognise each other's definitions. */
export const brand: unique symbol = Symbol.for("holdfast.definition") as never;

export type DefinitionKind =
  | "orchestration"
  | "activity"
  | "session"
  | "query"
  | "update"
  | "signal"
  | "pool";

export const kindOf = (value: unknown): DefinitionKind | undefined =>
  typeof value === "object" && value !== null && brand in value
    ? (value[brand] as DefinitionKind)
    : undefined;

export function requireName(what: DefinitionKind, name: string): string {
  if (typeof name === "string" && tokenPattern.test(name)) return name;
  throw new Fault("config", {
    code: "invalid_name",
    message: `${what} name ${JSON.stringify(name)} is not allowed: must be ${tokenRule}`,
  });
}
