/** Small components that every page uses. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { absolute, ago, duration } from "../format.ts";
import { now } from "../live.ts";

/** Shows a relative time; the absolute time on hover and for copying. */
export function When({ at }: { at: number | undefined }) {
  if (at === undefined) return <span class="muted">–</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={absolute(at)}>
      {ago(at, now.value)}
    </time>
  );
}

export function Took({ from, to }: { from: number | undefined; to: number | undefined }) {
  if (from === undefined) return <span class="muted">–</span>;
  return <span class="number">{duration(Math.max(0, (to ?? now.value) - from))}</span>;
}

/** A sentence in which `what stands between backticks` is code. */
export function Prose({ text }: { text: string }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

export function Badge({ status }: { status: string }) {
  return <span class={`badge badge-${status.replaceAll(" ", "-")}`}>{status}</span>;
}

export function Card(props: {
  title?: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      {(props.title || props.aside) && (
        <header class="card-head">
          {props.title && <h2>{props.title}</h2>}
          {props.aside && <div class="card-aside">{props.aside}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

/** The head of a page about one thing: the list it is in, what it is, its id, and what can be done with it. */
export function PageHead(props: {
  list: [href: string, name: string];
  kind: string;
  id: string;
  children?: ComponentChildren;
}) {
  const [href, name] = props.list;
  return (
    <div class="page-head">
      <div>
        <p class="crumb">
          <a href={href}>{name}</a>
        </p>
        <div class="with-id">
          <h1>
            <span class="kind">{props.kind}</span> <code>{props.id}</code>
          </h1>
          <Copy text={props.id} label="Copy id" />
        </div>
      </div>
      {props.children}
    </div>
  );
}

/** Stands where something is about to be: its outline, and a word for people who do not see it. */
export function Loading() {
  return (
    <div class="loading" role="status">
      <span class="hidden">Loading…</span>
      <span class="loading-line" />
      <span class="loading-line" />
      <span class="loading-line" />
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="button small"
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        setDone(true);
        setTimeout(() => setDone(false), 1500);
      }}
    >
      {done ? "Copied" : label}
    </button>
  );
}

/** A command line to copy into a terminal. */
export function Command({ text, label }: { text: string; label?: string }) {
  return (
    <div class="command">
      {label && <span class="command-label">{label}</span>}
      <Scrolled label={`${label ?? "Command"}: ${text}`} class="command-text">
        <code>{text}</code>
      </Scrolled>
      <Copy text={text} />
    </div>
  );
}

/** A scrolling area that can be reached by keyboard and has a label. */
export function Scrolled(props: { label: string; class?: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolled with the arrow keys
    <section class={props.class} aria-label={props.label} tabIndex={0}>
      {props.children}
    </section>
  );
}

/** How much of a limit is used, as a number and a bar. */
export function Meter({ used, max, label }: { used: number; max: number; label: string }) {
  const share = max > 0 ? Math.min(1, used / max) : 0;
  return (
    <span class="meter" title={`${label}: ${used} of ${max}`}>
      <span class="meter-track" aria-hidden="true">
        <span class={`meter-fill ${share >= 1 ? "full" : ""}`} style={{ width: `${share * 100}%` }} />
      </span>
      <span class="number">
        {used}/{max}
      </span>
    </span>
  );
}

export function Id({ children, href }: { children: string; href?: string }) {
  return href ? (
    <a class="id" href={href} title={children}>
      {children}
    </a>
  ) : (
    <code class="id" title={children}>
      {children}
    </code>
  );
}

/** `flow`: each fact as wide as it needs, in one line if there is room; otherwise in columns. */
export function Facts({ facts, flow }: { facts: [string, ComponentChildren][]; flow?: boolean }) {
  return (
    <dl class={`facts ${flow ? "flow" : ""}`}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Problem({ error }: { error: unknown }) {
  const message = error instanceof Error ? error.message : String(error);
  const hint =
    error instanceof Error && "hint" in error && typeof error.hint === "string" ? error.hint : undefined;
  return (
    <div class="notice error" role="alert">
      <strong>{message}</strong>
      {hint && <span>{hint}</span>}
    </div>
  );
}
