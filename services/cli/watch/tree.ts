/** Branches drawn as a tree. Pure. */
import type { Standing } from "../../../shared/timeline/index.ts";
import { count } from "../../../shared/wording/index.ts";
import { statusStyles } from "../render/instances.ts";
import { clip } from "../terminal/output.ts";
import { type Paint, plain, type Style } from "../terminal/paint.ts";
import { oneLine, span } from "../terminal/text.ts";
import type { Branch, Item } from "./branch.ts";

export interface Tree {
  branch: Branch;
  /** Followed children, by instance id. */
  children: ReadonlyMap<string, Tree>;
}

interface DrawOptions {
  now: number;
  paint?: Paint;
  /** Characters per line. */
  columns?: number;
  /** Number of lines available: finished items are folded first. */
  rows?: number;
}

const signs: Readonly<Record<Standing, { sign: string; style: Style }>> = {
  open: { sign: "●", style: "blue" },
  waiting: { sign: "◌", style: "yellow" },
  done: { sign: "✓", style: "green" },
  failed: { sign: "✗", style: "red" },
  cancelled: { sign: "○", style: "magenta" },
};

interface Line {
  /** Without colours, for measuring. */
  text: string;
  paint(text: string): string;
  below: Line[];
}

/** How many finished items of a branch are shown; tried from all to none until the tree fits. */
const foldingSteps = [Number.POSITIVE_INFINITY, 20, 5, 1, 0];

export function drawTree(tree: Tree, options: DrawOptions): string {
  const { rows = Number.POSITIVE_INFINITY } = options;
  let lines: string[] = [];
  for (const shown of foldingSteps) {
    lines = drawn(instanceLine(tree, options, shown), options);
    if (lines.length <= rows) return lines.join("\n");
  }
  const more = lines.length - rows + 1;
  return [...lines.slice(0, rows - 1), `… ${count(more, "more line")}`].join("\n");
}

function drawn(root: Line, { columns = Number.POSITIVE_INFINITY }: DrawOptions): string[] {
  const lines: string[] = [];
  const walk = (line: Line, lead: string, below: string) => {
    lines.push(`${lead}${line.paint(clip(line.text, Math.max(10, columns - lead.length)))}`);
    for (const [index, next] of line.below.entries()) {
      const last = index === line.below.length - 1;
      walk(next, `${below}${last ? "└─ " : "├─ "}`, `${below}${last ? "   " : "│  "}`);
    }
  };
  walk(root, "", "");
  return lines;
}

function instanceLine(tree: Tree, options: DrawOptions, shown: number): Line {
  const { branch } = tree;
  const took =
    branch.startedAt === undefined ? "" : `  ${span((branch.endedAt ?? options.now) - branch.startedAt)}`;
  const execution = branch.execution > 1 ? `  execution ${branch.execution}` : "";
  const note = branch.note === "" ? "" : `  ${branch.note}`;
  const name = branch.name === undefined ? "" : `  ${branch.name}`;
  return {
    text: oneLine(`${branch.instanceId}${name}  ${branch.status}${took}${execution}${note}`),
    paint: painter(options, statusStyles[branch.status]),
    below: itemLines(tree, undefined, options, shown),
  };
}

/** Items of one level; work on a session is drawn below the session. */
function itemLines(tree: Tree, on: string | undefined, options: DrawOptions, shown: number): Line[] {
  const { items } = tree.branch;
  const here = items.filter((item) => homeOf(item, items) === on);
  const finished = here.filter((item) => item.standing === "done" || item.standing === "cancelled");
  const folded = new Set(finished.slice(0, Math.max(0, finished.length - shown)));
  const lines = here.filter((item) => !folded.has(item)).map((item) => itemLine(tree, item, options, shown));
  if (folded.size === 0) return lines;
  const done: Line = { text: summary([...folded]), paint: painter(options, "dim"), below: [] };
  return [done, ...lines];
}

const homeOf = (item: Item, items: readonly Item[]): string | undefined =>
  item.on !== undefined && items.some((other) => other.sessionId === item.on) ? item.on : undefined;

const plurals: Readonly<Record<Item["kind"], string>> = {
  activity: "activities",
  call: "calls",
  timer: "timers",
  child: "children",
  session: "sessions",
  signal: "signals",
  update: "updates",
  pool: "pools",
};

function summary(folded: readonly Item[]): string {
  const kinds = new Map<Item["kind"], number>();
  for (const { kind } of folded) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const list = [...kinds].map(([kind, n]) => `${n} ${n === 1 ? kind : plurals[kind]}`);
  return `✓ ${list.join(", ")} over`;
}

function itemLine(tree: Tree, item: Item, options: DrawOptions, shown: number): Line {
  const child = item.childId === undefined ? undefined : tree.children.get(item.childId);
  // A detached child reports to no parent; its end is in its own history.
  const own = child?.branch.endedAt !== undefined && item.to === undefined ? child.branch : undefined;
  const { sign, style } = signs[own ? (own.status === "completed" ? "done" : "failed") : item.standing];
  const what = item.kind === "timer" ? item.label : `${item.kind} ${item.label}`;
  const notes = [item.note, child?.branch.note ?? ""].filter((note) => note !== "");
  return {
    text: oneLine(
      [`${sign} ${what}`, when({ ...item, to: item.to ?? own?.endedAt }, options.now), ...notes]
        .filter(Boolean)
        .join("  "),
    ),
    paint: painter(options, style),
    below: [
      ...(item.sessionId === undefined ? [] : itemLines(tree, item.sessionId, options, shown)),
      ...(child ? itemLines(child, undefined, options, shown) : []),
    ],
  };
}

function when({ from, to, dueAt, kind, standing }: Item, now: number): string {
  if (kind === "signal") return "";
  if (dueAt !== undefined && standing === "waiting")
    return dueAt > now ? `${kind === "timer" ? "fires" : "again"} in ${span(dueAt - now)}` : "due";
  return span(Math.max(0, (to ?? now) - from)) ?? "";
}

/** Only the sign has a colour; folded lines are dim as a whole. */
function painter({ paint = plain }: DrawOptions, style: Style): (text: string) => string {
  if (style === "dim") return (text) => paint("dim", text);
  return (text) => {
    const end = text.indexOf(" ");
    return end < 0 ? paint(style, text) : `${paint(style, text.slice(0, end))}${text.slice(end)}`;
  };
}
