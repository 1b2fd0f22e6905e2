/**
 * Shown for an empty installation: commands that work here, with an orchestration that this application has.
 */
import { get, me, type Startable } from "../../api.ts";
import { asSchema, exampleValue } from "../../form/schema.ts";
import { Card, Command } from "../../parts/basics.tsx";
import { useLoad } from "../../parts/use-load.ts";

export function FirstSteps() {
  const { data } = useLoad(
    (signal) => get<{ orchestrations: Startable[] }>("/api/orchestrations", signal),
    [],
  );
  if (!data) return null;
  const served = data.orchestrations.filter((one) => one.served);
  const chosen = served.find(({ name }) => name === "hello") ?? served[0];
  return chosen ? <StartIt orchestration={chosen} more={served.length - 1} /> : <NoOrchestrator />;
}

function StartIt({ orchestration, more }: { orchestration: Startable; more: number }) {
  const { name } = orchestration;
  const prefix = me.value?.prefix ? `${me.value.prefix}.` : "";
  const input = exampleValue(asSchema(orchestration.input));
  const quoted = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "'\\''")}'`;
  return (
    <Card title="Start the first orchestration">
      <p>
        Nothing has run here yet. Publishing its input on a NATS subject starts an orchestration: from any
        language, from the command line, or from the <a href={`/start?name=${name}`}>form</a>. The part after{" "}
        <code>orchestrations.</code> is the id you choose.
        {more > 0 && ` The application has ${more} more beside ${name}; the form lists them.`}
      </p>
      <Command
        label="NATS"
        text={`nats pub --jetstream ${prefix}orchestrations.my-first.start.${name} ${quoted(input)}`}
      />
      <Command label="CLI" text={`holdfast start ${name} --id my-first --input ${quoted(input)} --wait`} />
      <Command
        label="HTTP"
        text={`curl -X POST ${location.origin}/api/orchestrations/${name} -H 'content-type: application/json' -d ${quoted({ id: "my-first", input })}`}
      />
    </Card>
  );
}

function NoOrchestrator() {
  return (
    <Card title="Start an application first">
      <p>
        Nothing has run here yet, and no orchestrator has reported its orchestrations. An application is a
        module that exports them; this runs one with everything it needs:
      </p>
      <Command label="All in one" text="holdfast dev --app ./app.ts" />
      <p>Or, on the NATS server this gateway is connected to, each service by itself:</p>
      <Command label="Turns" text="holdfast orchestrator --app ./app.ts" />
      <Command label="Work" text="holdfast worker --app ./app.ts" />
      <Command label="Losses" text="holdfast watcher" />
    </Card>
  );
}
