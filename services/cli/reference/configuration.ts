/**
 * Generates the reference of all settings from the schemas that read them. `npm run docs:config` writes it, a
 * test compares.
 */
import { z } from "zod";
import { commonSettings, type SettingsShape } from "../../config.ts";
import { deploymentSettings } from "../../deployment.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { orchestratorSettings } from "../../orchestrator/settings.ts";
import { watcherSettings } from "../../watcher/config.ts";
import { workerSettings } from "../../worker/settings.ts";

/** Every variable that a service reads, by service. */
export const allSettings: Readonly<Record<string, SettingsShape>> = {
  "Every service": commonSettings,
  Orchestrator: orchestratorSettings,
  Worker: workerSettings,
  Watcher: watcherSettings,
  Gateway: gatewaySettings,
  "compose.yaml": deploymentSettings,
};

export function configurationReference(): string {
  const parts = Object.entries(allSettings).map(([title, shape]) => [
    `## ${title}`,
    "",
    "| variable | value | default | what |",
    "| --- | --- | --- | --- |",
    ...Object.entries(shape).map(([name, schema]) => row(name, schema)),
    "",
  ]);
  return [head, ...parts.flat()].join("\n");
}

const head = `# Configuration

Generated from the schemas that read it (\`npm run docs:config\`); a test fails when it is not current.

Every service reads its settings from the environment, once, at start. A value that does not fit is refused with the
variable's name and the rule. So is an unknown name with a prefix of Holdfast's (\`HOLDFAST_\`, \`HISTORY_\`, and in their
own service \`WORKER_\`, \`WATCHER_\`, \`GATEWAY_\`), a name one letter off a setting that is not set, and settings that
contradict each other. An empty variable counts as unset. Durations are \`250ms\`, \`5s\`, \`2m\`, \`1h\`, \`30d\`, or
milliseconds. \`compose.yaml\` itself reads \`DEPLOY_…\`.
`;

function row(name: string, schema: z.ZodType): string {
  const cells = [`\`${name}\``, ruleOf(schema), defaultOf(schema), descriptionOf(name, schema)];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function descriptionOf(name: string, schema: z.ZodType): string {
  if (schema.description === undefined)
    throw new Error(`setting ${name} has no description: add .describe(…)`);
  return schema.description;
}

const Meta = z.object({
  rule: z.string().optional(),
  durationMs: z.tuple([z.number(), z.number()]).optional(),
});

function ruleOf(schema: z.ZodType): string {
  const { rule, durationMs } = Meta.parse(innermost(schema).meta() ?? {});
  if (durationMs) return `duration, ${durationText(durationMs[0])} to ${durationText(durationMs[1])}`;
  return rule ?? "text";
}

function defaultOf(schema: z.ZodType): string {
  if (!(schema instanceof z.ZodDefault)) return "–";
  const value = schema.def.defaultValue;
  const isDuration = Meta.parse(innermost(schema).meta() ?? {}).durationMs !== undefined;
  const text = isDuration ? durationText(Number(value)) : String(value);
  return text === "" ? "empty" : `\`${text}\``;
}

/** The schema inside default and optional wrappers, which carries the rule's text. */
function innermost(schema: z.ZodType): z.ZodType {
  const wrapped = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional;
  return wrapped ? innermost(schema.unwrap() as z.ZodType) : schema;
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

function durationText(ms: number): string {
  const unit = units.find(([, size]) => ms >= size && ms % size === 0);
  return ms === 0 ? "0" : unit ? `${ms / unit[1]}${unit[0]}` : `${ms}ms`;
}
