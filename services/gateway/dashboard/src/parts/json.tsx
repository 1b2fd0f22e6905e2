/** Payloads are untrusted text: always rendered as text nodes, never as markup. */
import { useState } from "preact/hooks";
import { get } from "../api.ts";
import { bytes } from "../format.ts";
import { Copy, Scrolled } from "./basics.tsx";
import { VirtualList } from "./virtual-list.tsx";

const longestLine = 2_000;

export function Json({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  const lines = text
    .split("\n")
    .map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line));
  return (
    <div class="json">
      <div class="json-tools">
        <Copy text={text} />
      </div>
      {lines.length > 300 ? (
        <VirtualList class="json-text tall" label={label} rowHeight={18} count={lines.length}>
          {(index) => <div class="json-line">{lines[index]}</div>}
        </VirtualList>
      ) : (
        <Scrolled class="json-text" label={label}>
          <pre>{lines.join("\n")}</pre>
        </Scrolled>
      )}
    </div>
  );
}

/** Shows an inline value, or loads one from the object store on demand. */
export function BlobButton({
  instanceId,
  sha256,
  size,
}: {
  instanceId: string;
  sha256: string;
  size: number;
}) {
  const [value, setValue] = useState<{ value: unknown } | { error: string } | undefined>();
  if (value && "value" in value) return <Json value={value.value} label="Value from the object store" />;
  const fetchIt = () =>
    get<{ value: unknown }>(`/api/instances/${instanceId}/blobs/${sha256}`)
      .then(setValue)
      .catch((error: unknown) => setValue({ error: String(error) }));
  return (
    <p>
      <button type="button" class="button small" onClick={fetchIt}>
        Fetch {bytes(size)} from the object store
      </button>
      {value && "error" in value && <span class="bad"> {value.error}</span>}
    </p>
  );
}
