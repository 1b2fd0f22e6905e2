/** Checks the arguments of a client's start, and publishes the start. */
import { requireToken } from "../../bus/index.ts";
import { type OrchestrationDefinition, refuseUnknownOptions, validate } from "../../definitions/index.ts";
import { token } from "../../runtime/index.ts";
import { flowHeaders, parseDelay, parseFlow } from "../instance/flow-start.ts";
import type { ClientParts, StartOptions } from "./client-options.ts";
import { type InboxSender, traceHeaders } from "./inbox-sender.ts";

interface StartedInstance {
  id: string;
  /** False if the instance may have existed before, or begins later. */
  isNew: boolean;
  /**
   * Checks the output: another version of the code may serve the instance, and return a value that the
   * definition's types do not allow.
   */
  checked(output: unknown): unknown;
}

export async function startInstance(
  { names, runtime }: ClientParts,
  sender: InboxSender,
  orchestration: OrchestrationDefinition | string,
  input: unknown,
  options: StartOptions,
): Promise<StartedInstance> {
  const definition = typeof orchestration === "string" ? undefined : orchestration;
  const name = typeof orchestration === "string" ? orchestration : orchestration.name;
  const known = { id: true, inputBlob: true, delay: true, flow: true };
  refuseUnknownOptions(`start of "${name}"`, options, known);
  requireToken("orchestration name", name);
  const id = options.id ?? `${name.slice(0, 100)}-${token(runtime.random)}`;
  requireToken("instance id", id);
  const stored = options.inputBlob;
  if (!stored) validate(definition?.input, input, "invalid_input", `input of ${name}`);
  const { delay } = options;
  const at = delay === undefined ? undefined : runtime.clock.now() + parseDelay(delay);
  const flow = options.flow && parseFlow(options.flow);
  const payload = stored ? { blob: stored } : await sender.wrap(input, id);
  const { duplicate } = await sender.send(names.start(id, name), `start-${id}`, payload, {
    headers: flow ? { ...traceHeaders(), ...flowHeaders(flow) } : traceHeaders(),
    delayed: at === undefined ? undefined : { at, id },
    guessableFor: id,
  });
  return {
    id,
    isNew: !duplicate && !flow && at === undefined,
    checked: (output) => validate(definition?.output, output, "invalid_output", `output of ${name}`),
  };
}
