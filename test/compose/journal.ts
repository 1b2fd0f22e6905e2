/** What was done, what was seen, how long it took: for the terminal and for docs/compose-test.md. */
export interface Figure {
  what: string;
  value: string;
}

interface Entry {
  title: string;
  seconds: number;
  figures: Figure[];
}

export class Journal {
  readonly entries: Entry[] = [];
  readonly #say: (line: string) => void;
  #figures: Figure[] = [];

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** One step; what it notes belongs to it. */
  async step<T>(title: string, act: () => Promise<T>): Promise<T> {
    this.#figures = [];
    this.#say(`• ${title}`);
    const since = performance.now();
    const value = await act();
    const seconds = (performance.now() - since) / 1000;
    this.entries.push({ title, seconds, figures: this.#figures });
    this.#say(`  ${seconds.toFixed(1)} s`);
    return value;
  }

  note(what: string, value: string | number): void {
    this.#figures.push({ what, value: String(value) });
    this.#say(`  ${what}: ${value}`);
  }

  markdown(facts: readonly Figure[]): string {
    const rows = this.entries.map(({ title, seconds, figures }) => {
      const seen = figures.map(({ what, value }) => `${what}: **${value}**`).join("<br>");
      return `| ${title} | ${seconds.toFixed(1)} s | ${seen} |`;
    });
    return [
      "# The compose test, last run",
      "",
      "Written by `npm run test:compose -- --record`; what it does is described in [test/compose](../test/compose/README.md).",
      "",
      ...facts.map(({ what, value }) => `- ${what}: ${value}`),
      "",
      "| step | took | seen |",
      "| --- | --- | --- |",
      ...rows,
      "",
    ].join("\n");
  }
}
