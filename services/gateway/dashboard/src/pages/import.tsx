import { useMemo, useState } from "preact/hooks";
import { type Imported, importedPage, readHistoryFile } from "../history/import.ts";
import { Card, Problem } from "../parts/basics.tsx";
import { Field } from "../parts/dialog.tsx";
import { HistoryPanels } from "./orchestration/orchestration.tsx";

export function ImportPage() {
  const [imported, setImported] = useState<Imported | undefined>();
  const [error, setError] = useState<unknown>();
  const [execution, setExecution] = useState<number | undefined>();
  const [selected, select] = useState<number | undefined>();
  const page = useMemo(() => imported && importedPage(imported, execution), [imported, execution]);
  const read = async (file: File | undefined) => {
    if (!file) return;
    setError(undefined);
    setExecution(undefined);
    select(undefined);
    try {
      setImported(readHistoryFile(await file.text()));
    } catch (thrown) {
      setImported(undefined);
      setError(thrown);
    }
  };
  return (
    <>
      <h1>Look at a history file</h1>
      <Card>
        <p class="muted">
          A file from “Download history” is shown as if its orchestration were here. It stays in this page:
          nothing is sent anywhere.
        </p>
        <Field label="History file">
          <input
            type="file"
            accept="application/json,.json"
            onChange={(event) => void read(event.currentTarget.files?.[0])}
          />
        </Field>
        {error !== undefined && <Problem error={error} />}
      </Card>
      {imported && page && (
        <>
          <h2>
            <code>{imported.instanceId}</code>
          </h2>
          {page.executions.length > 1 && (
            <div class="chips">
              {page.executions.map((one) => (
                <button
                  key={one}
                  type="button"
                  class="chip"
                  aria-pressed={one === page.execution}
                  onClick={() => setExecution(one)}
                >
                  execution {one}
                </button>
              ))}
            </div>
          )}
          <HistoryPanels
            instanceId={imported.instanceId}
            page={page}
            live={false}
            selected={selected}
            select={select}
          />
        </>
      )}
    </>
  );
}
