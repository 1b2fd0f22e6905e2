/** How definitions shape the arguments of what takes them: an input that is not asked for may be left out. */
import type { ActivityDefinition } from "./activity.ts";
import type { OrchestrationDefinition } from "./orchestration.ts";

/** `input, options`, where the input may be left out if it may be undefined. */
export type InputArguments<I, Options> = undefined extends I
  ? [input?: I, options?: Options]
  : [input: I, options?: Options];

/** What an activity or orchestration takes; unknown for a plain name. */
export type InputOf<D> =
  D extends ActivityDefinition<infer I, infer _O>
    ? I
    : D extends OrchestrationDefinition<infer I, infer _O>
      ? I
      : unknown;

/** What an activity or orchestration returns; unknown for a plain name. */
export type OutputOf<D> =
  D extends ActivityDefinition<infer _I, infer O>
    ? O
    : D extends OrchestrationDefinition<infer _I, infer O>
      ? O
      : unknown;

/** Options of what a session type is opened with: `config` is required where the type requires it. */
export type ConfiguredArguments<Config, Options> = undefined extends Config
  ? [options?: Options & { config?: Config }]
  : [options: Options & { config: Config }];
