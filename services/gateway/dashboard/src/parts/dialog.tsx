/** Confirms an action before it is done, and shows the equivalent command. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Command, Problem } from "./basics.tsx";
import { toast } from "./toasts.tsx";

interface AskedField {
  name: string;
  label: string;
  multiline?: boolean;
  value?: string;
  required?: boolean;
  /** Values to choose from, loaded when the dialog opens; any other may be typed. */
  offers?: () => Promise<readonly string[]>;
}

export interface Ask {
  title: string;
  /** What the action will do, in a sentence. */
  text: string;
  button: string;
  danger?: boolean;
  fields?: AskedField[];
  commands?: (values: Record<string, string>) => { label: string; text: string }[];
  act(values: Record<string, string>): Promise<unknown>;
  /** Shown as a toast after success. */
  done?: string;
  /** Text shown in the dialog after success; the dialog stays open. */
  show?: (outcome: unknown) => string;
}

const asked = signal<Ask | undefined>(undefined);

export function ask(question: Ask): void {
  asked.value = question;
}

export function DialogHost() {
  return asked.value ? <Dialog key={asked.value.title} ask={asked.value} /> : null;
}

function Dialog({ ask: question }: { ask: Ask }) {
  const box = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>();
  const [shown, setShown] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [values, setValues] = useState<Record<string, string>>(
    Object.fromEntries((question.fields ?? []).map((field) => [field.name, field.value ?? ""])),
  );
  useEffect(() => box.current?.showModal(), []);
  const close = () => {
    asked.value = undefined;
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const outcome = await question.act(values);
      if (question.show) {
        setShown(question.show(outcome));
        setBusy(false);
        return;
      }
      if (question.done) toast(question.done);
      close();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} onClose={close} aria-labelledby="dialog-title">
      <form onSubmit={submit}>
        <h2 id="dialog-title">{question.title}</h2>
        <p>{question.text}</p>
        {(question.fields ?? []).map((field) => {
          const value = values[field.name] ?? "";
          const change = (text: string) => setValues({ ...values, [field.name]: text });
          return (
            <div key={field.name}>
              <Field label={field.label}>
                {field.multiline ? (
                  <textarea rows={5} value={value} onInput={(event) => change(event.currentTarget.value)} />
                ) : (
                  <input
                    value={value}
                    required={field.required ?? false}
                    onInput={(event) => change(event.currentTarget.value)}
                  />
                )}
              </Field>
              {field.offers && <Offers load={field.offers} value={value} choose={change} />}
            </div>
          );
        })}
        {error !== undefined && <Problem error={error} />}
        {shown !== undefined && <pre role="status">{shown}</pre>}
        {question.commands?.(values).map((command) => (
          <Command key={command.label} label={command.label} text={command.text} />
        ))}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={close}>
            Back
          </button>
          <button type="submit" class={`button primary ${question.danger ? "danger" : ""}`} disabled={busy}>
            {question.button}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function Offers(props: {
  load: () => Promise<readonly string[]>;
  value: string;
  choose: (value: string) => void;
}) {
  const [offers, setOffers] = useState<readonly string[]>([]);
  useEffect(() => {
    // Without an answer the name can still be typed.
    props.load().then(setOffers, () => undefined);
  }, []);
  if (offers.length === 0) return null;
  return (
    <fieldset class="chips offers" aria-label="Names there are">
      {offers.map((offer) => (
        <button
          key={offer}
          type="button"
          class="chip"
          aria-pressed={offer === props.value}
          onClick={() => props.choose(offer)}
        >
          {offer}
        </button>
      ))}
    </fieldset>
  );
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}
