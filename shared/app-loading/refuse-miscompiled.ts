/**
 * Refuses an application whose code repeats errors of earlier rounds of a loop, because its builder lowered `using`
 * wrongly. The loader corrects the modules it loads; it does not see CommonJS of a user's build or code compiled by a
 * test runner.
 */
import type { App } from "../definitions/index.ts";
import { Fault } from "../errors/index.ts";
import { isMiscompiled } from "./correct-using.ts";

export function refuseMiscompiled(app: App, path: string): void {
  for (const [name, code] of codeOf(app)) {
    if (!isMiscompiled(String(code))) continue;
    throw new Fault("config", {
      code: "app_miscompiled",
      message: `cannot load the application ${path}: "${name}" was compiled by esbuild so that "using" in a loop throws errors of earlier rounds`,
      hint: "Build ES modules, which are corrected when they are loaded, or give the TypeScript file itself. In tests, use a runner whose compiler does it right (vitest 4).",
    });
  }
}

function* codeOf({ orchestrations, activities, sessions }: App): Generator<[string, unknown]> {
  for (const { name, run } of [...orchestrations.values(), ...activities.values()]) yield [name, run];
  for (const { name, init, calls, checkpoint, restore } of sessions.values()) {
    for (const code of [init, checkpoint, restore]) yield [name, code];
    for (const [call, { run }] of Object.entries(calls)) yield [`${name}.${call}`, run];
  }
}
