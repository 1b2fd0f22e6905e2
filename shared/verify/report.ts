/**
 * The checker's report. Bounded: of many violations of one law only the first are kept, but all are counted.
 */
import { checkedLaws, type LawId } from "./laws.ts";

export interface Violation {
  readonly law: LawId;
  /** The instance that breaks the law; undefined if it concerns no single instance. */
  readonly instanceId?: string | undefined;
  readonly evidence: string;
  readonly means: string;
}

/** Distribution of `count` measurements, in milliseconds. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Report {
  readonly ok: boolean;
  readonly violations: readonly Violation[];
  /** Number of violations per law, including those not listed. */
  readonly counts: Readonly<Partial<Record<LawId, number>>>;
  /** What could not be checked, and why. */
  readonly notes: readonly string[];
  /** How many things of each kind were read. */
  readonly read: Readonly<Record<string, number>>;
  /**
   * How long things took: from a loss to its record, from a cancel to the end, from a timer's time to its
   * firing.
   */
  readonly spreads: Readonly<Record<string, Spread>>;
}

export type OnViolation = (law: LawId, evidence: string) => void;

const listedPerLaw = 50;
const listedNotes = 50;
const keptSamples = 10_000;

export class Findings {
  readonly read: Record<string, number> = {};
  readonly #violations: Violation[] = [];
  readonly #counts: Partial<Record<LawId, number>> = {};
  readonly #notes = new Set<string>();
  readonly #samples = new Map<string, { count: number; kept: number[] }>();

  violation(law: LawId, instanceId: string | undefined, evidence: string): void {
    const count = (this.#counts[law] ?? 0) + 1;
    this.#counts[law] = count;
    if (count > listedPerLaw) return;
    this.#violations.push({ law, instanceId, evidence, means: checkedLaws[law].means });
  }

  violationsOf(instanceId: string | undefined): OnViolation {
    return (law, evidence) => this.violation(law, instanceId, evidence);
  }

  note(text: string): void {
    if (this.#notes.size < listedNotes) this.#notes.add(text);
  }

  count(what: string, by = 1): void {
    this.read[what] = (this.read[what] ?? 0) + by;
  }

  /** Adds one measurement; of very many only every n-th is kept. */
  sample(what: string, ms: number): void {
    const samples = this.#samples.get(what) ?? { count: 0, kept: [] };
    this.#samples.set(what, samples);
    samples.count++;
    if (samples.kept.length < keptSamples) samples.kept.push(ms);
    else samples.kept[samples.count % keptSamples] = ms;
  }

  report(): Report {
    const spreads = Object.fromEntries(
      [...this.#samples].map(([what, { count, kept }]) => [what, spreadOf(count, kept)]),
    );
    return {
      ok: this.#violations.length === 0,
      violations: this.#violations,
      counts: this.#counts,
      notes: [...this.#notes],
      read: this.read,
      spreads,
    };
  }
}

function spreadOf(count: number, kept: readonly number[]): Spread {
  const sorted = kept.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

/** One line per violation: for tests, and for plain-text output. */
export const violationLines = ({ violations }: Pick<Report, "violations">): string[] =>
  violations.map(({ law, instanceId, evidence }) => `${law} ${instanceId ?? "(installation)"}: ${evidence}`);
