/** A thread of its own loads everything anew. What keeps leases must not pull in what it never uses: it is memory. */
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Static imports and re-exports of values; what is only a type, or asked for later, is not loaded. */
const loads = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm;

function loadedBy(file: string, seen = new Map<string, string>()): Map<string, string> {
  const text = readFileSync(join(root, file), "utf8");
  for (const [, specifier = ""] of text.matchAll(loads)) {
    const target = specifier.startsWith(".")
      ? relative(root, resolve(root, dirname(file), specifier))
      : specifier;
    if (seen.has(target)) continue;
    seen.set(target, file);
    if (specifier.startsWith(".")) loadedBy(target, seen);
  }
  return seen;
}

test.each(["services/orchestrator/watchdog-thread.ts", "shared/leases/renewal-thread.ts"])(
  "%s loads neither schemas nor telemetry",
  (thread) => {
    const loaded = loadedBy(thread);
    expect(loaded.has("@nats-io/transport-node"), "the walk finds what is loaded").toBe(true);
    const heavy = [...loaded].filter(([name]) => /^(zod|@opentelemetry\/|schemas\/index)/.test(name));
    expect(heavy.map(([name, by]) => `${by} loads ${name}`)).toEqual([]);
  },
);
