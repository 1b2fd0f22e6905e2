/**
 * `ctx.state`: values of an instance that outlive its executions. Within an execution the code sets them, and replay
 * sets them again; continue-as-new carries them over. Queries and validators can only read them.
 */
import { HoldfastError, messageOf } from "../../errors/index.ts";
import { requireExactJson, writeJson } from "../../runtime/index.ts";
import { occupant } from "../run/turn-window.ts";
import { snapshot } from "./snapshot.ts";

type StateValues = Record<string, unknown>;

export class EntityState {
  #values: StateValues;
  readonly #view: StateValues;
  readonly #exact: boolean;

  /** `exact`: what JSON would change is refused (rule 3, `currentRules`). */
  constructor(initial: StateValues, exact: boolean) {
    this.#values = structuredClone(initial);
    this.#exact = exact;
    this.#view = new Proxy(this.#values, {
      get: (values, key) => shown(Reflect.get(values, key)),
      set: (values, key, value) => {
        refuseLook(key);
        requireJson(key, value, exact);
        return Reflect.set(values, key, value);
      },
      deleteProperty: (values, key) => {
        refuseLook(key);
        return Reflect.deleteProperty(values, key);
      },
    });
  }

  /** A value that is not an object gives an empty state. */
  static of(value: unknown, exact: boolean): EntityState {
    return new EntityState(typeof value === "object" && value !== null ? { ...value } : {}, exact);
  }

  get view(): StateValues {
    return this.#view;
  }

  get isEmpty(): boolean {
    return Object.keys(this.#values).length === 0;
  }

  /** Nested values may have become something else since they were assigned. */
  snapshot(): ReturnType<typeof snapshot> {
    for (const [key, value] of Object.entries(this.#values)) requireJson(key, value, this.#exact);
    return snapshot(this.#values, "state");
  }
}

/** Nested values can be changed by the code, but are read-only for queries and validators. */
const shown = (value: unknown): unknown => (occupant()?.looksOnly ? readOnly(value) : value);

function readOnly(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return new Date(value); // its methods do not work on a proxy
  return new Proxy(value, {
    get: (target, key) => readOnly(Reflect.get(target, key)),
    set: (_target, key) => refuseLook(key),
    deleteProperty: (_target, key) => refuseLook(key),
  });
}

function refuseLook(key: string | symbol): boolean {
  const code = occupant();
  if (code?.looksOnly) code.refuse(`a change of state.${String(key)}`);
  return false;
}

function requireJson(key: string | symbol, value: unknown, exact: boolean): void {
  if (value === undefined) return;
  try {
    if (exact) requireExactJson(value);
    else writeJson(value, { emptiesObjects: true });
  } catch (error) {
    const why = messageOf(error);
    throw new HoldfastError({
      code: "not_serialisable",
      message: `state.${String(key)}: ${why}`,
      cause: error,
    });
  }
}
