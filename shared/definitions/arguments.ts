/** Types of arguments that depend on a definition: an input that may be undefined may be left out. */
import type { ActivityDefinition } from "./activity.ts";
import type { OrchestrationDefinition } from "./orchestration.ts";

/** `input, options`, where the input may be left out if it may be undefined. */
export type InputArguments<I, Options> = undefined extends I
  ? [input?: I, options?: Options]
  : [input: I, options?: Options];

/** The input type of an activity or orchestration; unknown for a plain name. */
export type InputOf<D> =
  D extends ActivityDefinition<infer I, infer _O>
    ? I
    : D extends OrchestrationDefinition<infer I, infer _O>
      ? I
      : unknown;

/** The result type of an activity or orchestration; unknown for a plain name. */
export type OutputOf<D> =
  D extends ActivityDefinition<infer _I, infer O>
    ? O
    : D extends OrchestrationDefinition<infer _I, infer O>
      ? O
      : unknown;

/** Options for opening a session type: `config` is required if the type requires it. */
export type ConfiguredArguments<Config, Options> = undefined extends Config
  ? [options?: Options & { config?: Config }]
  : [options: Options & { config: Config }];
