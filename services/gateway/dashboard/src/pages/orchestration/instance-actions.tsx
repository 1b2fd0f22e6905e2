/** The actions on one orchestration, each with its dialog. */
import { get, type InstanceView, type MessageNames, mayAct, me, post } from "../../api.ts";
import { ask } from "../../parts/dialog.tsx";
import { go } from "../../router.ts";

const terminal = ["completed", "failed", "cancelled", "terminated"];

export function InstanceActions({ instance }: { instance: InstanceView }) {
  const { instanceId } = instance;
  const over = terminal.includes(instance.status);
  return (
    <div class="actions" role="toolbar" aria-label="Actions">
      <a
        class="button"
        href={`/api/instances/${instanceId}/history?download=true`}
        download={`${instanceId}.history.json`}
      >
        Download history
      </a>
      <button type="button" class="button" onClick={() => queryIt(instanceId)}>
        Query…
      </button>
      {mayAct() && instance.status !== "pending" && (
        <button type="button" class="button" onClick={() => startAgain(instanceId)}>
          Start again…
        </button>
      )}
      {mayAct() && !over && (
        <>
          <button type="button" class="button" onClick={() => signalIt(instanceId)}>
            Signal…
          </button>
          <button type="button" class="button" onClick={() => updateIt(instanceId)}>
            Update…
          </button>
          <button type="button" class="button" onClick={() => end(instanceId, "cancel")}>
            Cancel…
          </button>
          <button type="button" class="button danger" onClick={() => end(instanceId, "terminate")}>
            Terminate…
          </button>
        </>
      )}
    </div>
  );
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const subject = (rest: string): string => `${me.value?.prefix ? `${me.value.prefix}.` : ""}${rest}`;

const offer = (instanceId: string, kind: keyof MessageNames) => async () =>
  (await get<MessageNames>(`/api/instances/${instanceId}/messages`))[kind];

function startAgain(instanceId: string): void {
  ask({
    title: "Start again with this input?",
    text: "The same orchestration begins anew, with the same input, under another id. This one stays as it is.",
    button: "Start again",
    fields: [{ name: "id", label: "Id (optional: made for you)" }],
    commands: ({ id = "" }) => [
      { label: "CLI", text: `holdfast start-again ${instanceId}${id ? ` --id ${id}` : ""}` },
      {
        label: "HTTP",
        text: `curl -X POST ${location.origin}/api/instances/${instanceId}/start-again -H 'content-type: application/json' -d ${quoted(JSON.stringify(id ? { id } : {}))}`,
      },
    ],
    done: "Started again",
    act: async ({ id = "" }) => {
      const started = await post<{ instanceId: string }>(
        `/api/instances/${instanceId}/start-again`,
        id ? { id } : {},
      );
      go(`/orchestrations/${started.instanceId}`);
    },
  });
}

/** `name`: filled in where a name was clicked. */
export function signalIt(instanceId: string, name = ""): void {
  ask({
    title: "Send a signal",
    text: "It is kept until the orchestration asks for it, in order of arrival.",
    button: "Send",
    fields: [
      { name: "event", label: "Name", required: true, value: name, offers: offer(instanceId, "signals") },
      { name: "payload", label: "Payload (JSON)", multiline: true, value: "{}" },
    ],
    commands: ({ event = "", payload = "" }) => [
      { label: "CLI", text: `holdfast signal ${instanceId} ${event || "<name>"} ${quoted(payload)}` },
      {
        label: "NATS",
        text: `nats pub --jetstream ${subject(`orchestrations.${instanceId}.signal.${event || "<name>"}`)} ${quoted(payload)}`,
      },
    ],
    done: "Signal sent",
    act: ({ event = "", payload = "" }) =>
      post(`/api/instances/${instanceId}/signal/${encodeURIComponent(event)}`, { payload: parsed(payload) }),
  });
}

/** A query changes nothing, so viewers may send one. */
export function queryIt(instanceId: string, name = ""): void {
  ask({
    title: "Ask a question",
    text: "Its code answers from its present state, also after its end. Nothing is changed.",
    button: "Ask",
    fields: [
      { name: "name", label: "Name", required: true, value: name, offers: offer(instanceId, "queries") },
      { name: "input", label: "Input (JSON, optional)", multiline: true },
    ],
    commands: ({ name = "", input = "" }) => [
      {
        label: "CLI",
        text: `holdfast query ${instanceId} ${name || "<name>"} ${input && quoted(input)}`.trim(),
      },
      {
        label: "NATS",
        text: `nats req ${subject(`query.${instanceId}.${name || "<name>"}`)} ${quoted(input)}`,
      },
    ],
    show: (outcome) => JSON.stringify(outcome, null, 2),
    act: async ({ name = "", input = "" }) => {
      const { answer } = await get<{ answer?: unknown }>(
        `/api/instances/${instanceId}/query/${encodeURIComponent(name)}${input.trim() === "" ? "" : `?input=${encodeURIComponent(input)}`}`,
      );
      return answer ?? null;
    },
  });
}

export function updateIt(instanceId: string, name = ""): void {
  ask({
    title: "Send an update",
    text: "Its code takes or refuses it, and answers when its handler is done.",
    button: "Send",
    fields: [
      { name: "name", label: "Name", required: true, value: name, offers: offer(instanceId, "updates") },
      { name: "input", label: "Input (JSON)", multiline: true, value: "{}" },
    ],
    commands: ({ name = "", input = "" }) => [
      { label: "CLI", text: `holdfast update ${instanceId} ${name || "<name>"} ${quoted(input)}` },
      {
        label: "NATS",
        text: `nats req ${subject(`update.${instanceId}.${name || "<name>"}`)} ${quoted(input)}`,
      },
    ],
    show: (outcome) => JSON.stringify(outcome, null, 2),
    act: ({ name = "", input = "" }) =>
      post(`/api/instances/${instanceId}/update/${encodeURIComponent(name)}`, { input: parsed(input) }),
  });
}

function end(instanceId: string, verb: "cancel" | "terminate"): void {
  ask({
    title: verb === "cancel" ? "Cancel this orchestration?" : "Terminate this orchestration?",
    text:
      verb === "cancel"
        ? "It is asked to stop. Its code may clean up first; its sessions close when it ends."
        : "It ends at once. Its code cannot clean up; its sessions are closed.",
    button: verb === "cancel" ? "Cancel it" : "Terminate it",
    danger: true,
    fields: [{ name: "reason", label: "Reason (optional)" }],
    commands: ({ reason = "" }) => [
      { label: "CLI", text: `holdfast ${verb} ${instanceId}${reason ? ` --reason ${quoted(reason)}` : ""}` },
      {
        label: "NATS",
        text: `nats pub --jetstream ${subject(`orchestrations.${instanceId}.${verb}`)} ${quoted(reason ? JSON.stringify({ reason }) : "{}")}`,
      },
    ],
    done: verb === "cancel" ? "Asked to cancel" : "Terminated",
    act: ({ reason = "" }) => post(`/api/instances/${instanceId}/${verb}`, reason ? { reason } : {}),
  });
}

function parsed(text: string): unknown {
  try {
    return text.trim() === "" ? null : JSON.parse(text);
  } catch (error) {
    throw new Error(`The payload is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
}
