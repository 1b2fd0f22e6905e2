/** A user's application: the definitions among a module's exports, sorted by kind. */
import { Fault } from "../errors/index.ts";
import type { AnyActivity } from "./activity.ts";
import { kindOf } from "./brand.ts";
import type { AnyOrchestration } from "./orchestration.ts";
import type { PoolDefinition } from "./pool.ts";
import type { AnySession } from "./session.ts";

/** Everything an application defines, by kind and name; `collectApp` makes it from the exports. */
export interface App {
  readonly orchestrations: ReadonlyMap<string, AnyOrchestration>;
  readonly activities: ReadonlyMap<string, AnyActivity>;
  readonly sessions: ReadonlyMap<string, AnySession>;
  /** Pools that the installation keeps warm. */
  readonly pools?: readonly PoolDefinition[];
}

/**
 * Finds definitions among a module's exports: named ones, and those in arrays or plain objects one level
 * down.
 *
 * @example
 * ```ts
 * const outcome = await replayHistory(collectApp({ orders: [order, refund], charge }), file);
 * ```
 */
export function collectApp(exports: Record<string, unknown>, from = "the application"): App {
  const orchestrations = new Map<string, AnyOrchestration>();
  const activities = new Map<string, AnyActivity>();
  const sessions = new Map<string, AnySession>();
  const pools: PoolDefinition[] = [];
  const add = <T extends { name: string }>(map: Map<string, T>, kind: string, definition: T) => {
    const known = map.get(definition.name);
    if (known && known !== definition) {
      throw new Fault("config", {
        code: "duplicate_definition",
        message: `${from} defines two ${kind} named "${definition.name}"`,
        hint: "Give one of them another name.",
      });
    }
    map.set(definition.name, definition);
  };
  const visit = (value: unknown, depth: number) => {
    switch (kindOf(value)) {
      case "orchestration":
        return add(orchestrations, "orchestrations", value as AnyOrchestration);
      case "activity":
        return add(activities, "activities", value as AnyActivity);
      case "signal":
        return;
      case "pool": {
        const pool = value as PoolDefinition;
        if (!pools.includes(pool)) pools.push(pool);
        // A pool that is exported without its session type brings the type along.
        return add(sessions, "session types", pool.type);
      }
      case "session":
        return add(sessions, "session types", value as AnySession);
      default:
        if (depth < 2 && typeof value === "object" && value !== null) {
          for (const inner of Object.values(value)) visit(inner, depth + 1);
        }
    }
  };
  visit(exports, 0);
  return { orchestrations, activities, sessions, pools };
}
