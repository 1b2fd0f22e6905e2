/** A form generated from a JSON Schema. */
import { useState } from "preact/hooks";
import { Field } from "../parts/dialog.tsx";
import { fieldKind, firstValue, type Schema } from "./schema.ts";

interface FieldProps {
  schema: Schema;
  name: string;
  value: unknown;
  required: boolean;
  onChange: (value: unknown) => void;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function SchemaField(props: FieldProps) {
  const { schema, name, value, required, onChange } = props;
  const field = fieldKind(schema);
  const label = `${schema.title ?? name}${required ? "" : " (optional)"}`;
  switch (field.kind) {
    case "object":
      return (
        <fieldset class="form-object">
          {name !== "" && <legend>{label}</legend>}
          {schema.description && <p class="muted">{schema.description}</p>}
          {field.properties.map(([inner, innerSchema, innerRequired]) => (
            <SchemaField
              key={inner}
              name={inner}
              schema={innerSchema}
              required={innerRequired}
              value={isRecord(value) ? value[inner] : undefined}
              onChange={(next) => {
                const { [inner]: _, ...rest } = isRecord(value) ? value : {};
                onChange(next === undefined ? rest : { ...rest, [inner]: next });
              }}
            />
          ))}
        </fieldset>
      );
    case "list":
      return <ListField {...props} of={field.of} label={label} />;
    case "flag":
      return (
        <label class="field check">
          <input
            type="checkbox"
            checked={value === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
          />
          <span>{label}</span>
        </label>
      );
    default:
      return (
        <Field label={label}>
          <PlainControl {...props} />
          {schema.description && <small class="muted">{schema.description}</small>}
        </Field>
      );
  }
}

function PlainControl({ schema, value, required, onChange }: FieldProps) {
  const field = fieldKind(schema);
  const text = (next: string) => onChange(next === "" && !required ? undefined : next);
  switch (field.kind) {
    case "choice":
      return (
        <select
          value={JSON.stringify(value) ?? ""}
          required={required}
          onChange={(event) =>
            onChange(event.currentTarget.value === "" ? undefined : JSON.parse(event.currentTarget.value))
          }
        >
          {!required && <option value="">–</option>}
          {field.options.map((option) => (
            <option key={JSON.stringify(option)} value={JSON.stringify(option)}>
              {String(option)}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <input
          type="number"
          step={field.whole ? 1 : "any"}
          min={schema.minimum}
          max={schema.maximum}
          required={required}
          value={typeof value === "number" ? value : ""}
          onInput={(event) =>
            onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.valueAsNumber)
          }
        />
      );
    case "text":
      return field.long ? (
        <textarea
          rows={4}
          required={required}
          value={String(value ?? "")}
          onInput={(event) => text(event.currentTarget.value)}
        />
      ) : (
        <input
          required={required && (schema.minLength ?? 0) > 0}
          minLength={schema.minLength}
          maxLength={schema.maxLength}
          pattern={schema.pattern}
          value={String(value ?? "")}
          onInput={(event) => text(event.currentTarget.value)}
        />
      );
    default:
      return <JsonControl value={value} onChange={onChange} />;
  }
}

function ListField(props: FieldProps & { of: Schema; label: string }) {
  const list = Array.isArray(props.value) ? props.value : [];
  return (
    <fieldset class="form-object">
      <legend>{props.label}</legend>
      {props.schema.description && <p class="muted">{props.schema.description}</p>}
      {list.map((item, index) => (
        <div key={index} class="form-item">
          <SchemaField
            name={`${props.name} ${index + 1}`}
            schema={props.of}
            required
            value={item}
            onChange={(next) => props.onChange(list.map((old, at) => (at === index ? next : old)))}
          />
          <button
            type="button"
            class="button small"
            aria-label={`Remove ${props.name} ${index + 1}`}
            onClick={() => props.onChange(list.filter((_, at) => at !== index))}
          >
            ✕
          </button>
        </div>
      ))}
      <button
        type="button"
        class="button small"
        onClick={() => props.onChange([...list, firstValue(props.of)])}
      >
        Add
      </button>
    </fieldset>
  );
}

/**
 * A field for free JSON: its value changes when the text is valid JSON; otherwise it shows an error and
 * blocks the form.
 */
export function JsonControl({ value, onChange }: { value: unknown; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(JSON.stringify(value ?? null, null, 2));
  const [bad, setBad] = useState(false);
  return (
    <>
      <textarea
        rows={6}
        class="code"
        spellcheck={false}
        value={text}
        aria-invalid={bad}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          const field = event.currentTarget;
          try {
            onChange(JSON.parse(next));
            setBad(false);
            field.setCustomValidity("");
          } catch {
            setBad(true);
            // The form cannot be sent now: the last valid value is not what the screen shows.
            field.setCustomValidity("This is not JSON yet.");
          }
        }}
      />
      {bad && <small class="bad">This is not JSON yet.</small>}
    </>
  );
}
