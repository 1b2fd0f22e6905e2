/** Starts an orchestration with a form made from its input schema. */
import { useState } from "preact/hooks";
import { get, mayAct, me, post, type Startable } from "../api.ts";
import { asSchema, firstValue } from "../form/schema.ts";
import { JsonControl, SchemaField } from "../form/schema-form.tsx";
import { Card, Command, Empty, Loading, Problem } from "../parts/basics.tsx";
import { Field } from "../parts/dialog.tsx";
import { toast } from "../parts/toasts.tsx";
import { useLoad } from "../parts/use-load.ts";
import { go, query, setQuery } from "../router.ts";

export function StartPage() {
  const { data, error } = useLoad(
    (signal) => get<{ orchestrations: Startable[] }>("/api/orchestrations", signal),
    [],
  );
  if (!mayAct()) {
    return (
      <>
        <h1>Start an orchestration</h1>
        <Empty title="You may look, not act">
          <p class="muted">
            {me.value?.readOnly ? "This gateway is read-only." : "Starting needs the role operator."}
          </p>
        </Empty>
      </>
    );
  }
  const known = data?.orchestrations ?? [];
  const name = query.value.get("name") ?? known.find((one) => one.served)?.name ?? "";
  const chosen = known.find((one) => one.name === name);
  return (
    <>
      <h1>Start an orchestration</h1>
      {error !== undefined && <Problem error={error} />}
      {!data && error === undefined && <Loading />}
      {data && known.length === 0 && (
        <Empty title="No orchestration is known here">
          <p class="muted">An orchestrator reports the orchestrations of its application. None is running.</p>
          <Command text="holdfast orchestrator --app ./app.ts" />
        </Empty>
      )}
      {known.length > 0 && (
        <Card>
          <Field label="Orchestration">
            <select value={name} onChange={(event) => setQuery({ name: event.currentTarget.value })}>
              {known.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.name}
                  {one.served ? "" : " (no orchestrator serves it now)"}
                </option>
              ))}
            </select>
          </Field>
          {chosen && <StartForm key={chosen.name} orchestration={chosen} />}
        </Card>
      )}
    </>
  );
}

function StartForm({ orchestration }: { orchestration: Startable }) {
  const schema = asSchema(orchestration.input);
  const [input, setInput] = useState<unknown>(firstValue(schema));
  const [id, setId] = useState("");
  const [asJson, setAsJson] = useState(schema === undefined);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const { name } = orchestration;
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const started = await post<{ instanceId: string }>(`/api/orchestrations/${name}`, {
        ...(id === "" ? {} : { id }),
        input,
      });
      toast(`Started ${started.instanceId}`);
      go(`/orchestrations/${started.instanceId}`);
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  const text = JSON.stringify(input ?? null);
  const quoted = `'${text.replaceAll("'", "'\\''")}'`;
  const prefix = me.value?.prefix ? `${me.value.prefix}.` : "";
  return (
    <form onSubmit={submit} class="start-form">
      <Field label="Id (optional: the same id again changes nothing)">
        <input
          value={id}
          pattern="[A-Za-z0-9_\-]{1,128}"
          title="1 to 128 characters of A-Z a-z 0-9 _ -"
          placeholder="made for you"
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </Field>
      <div class="form-head">
        <h2>Input</h2>
        {schema && (
          <button type="button" class="chip" aria-pressed={asJson} onClick={() => setAsJson(!asJson)}>
            as JSON
          </button>
        )}
      </div>
      {asJson || !schema ? (
        <Field label="Input as JSON">
          <JsonControl value={input} onChange={setInput} />
        </Field>
      ) : (
        <SchemaField schema={schema} name="" required value={input} onChange={setInput} />
      )}
      {error !== undefined && <Problem error={error} />}
      <button type="submit" class="button primary" disabled={busy}>
        Start {name}
      </button>
      <Command
        label="NATS"
        text={`nats pub --jetstream ${prefix}orchestrations.${id || "<id>"}.start.${name} ${quoted}`}
      />
      <Command
        label="CLI"
        text={`holdfast start ${name} --input ${quoted}${id ? ` --id ${id}` : ""} --wait`}
      />
      <Command
        label="HTTP"
        text={`curl -X POST ${location.origin}/api/orchestrations/${name} -H 'content-type: application/json' -d '${JSON.stringify({ ...(id === "" ? {} : { id }), input }).replaceAll("'", "'\\''")}'`}
      />
    </form>
  );
}
