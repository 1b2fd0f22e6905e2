export interface Summary {
  instanceId: string;
  documents: number;
  /** Against the labels of the corpus, 0 to 1. */
  accuracy: number;
  modelLoads: number;
  lossesSurvived: number;
  /** While a worker held the session. */
  callsPerSecond: number;
  /** From the kill until the next holder was ready. */
  outageMs: number;
  /** Per document. */
  coldMs: number;
  warmMs: number;
  coldToWarm: number;
}

export function summaryTable(summary: Summary): string {
  const rows = [
    ["documents", String(summary.documents)],
    ["accuracy", `${(100 * summary.accuracy).toFixed(1)} %`],
    ["model loads", String(summary.modelLoads)],
    ["losses survived", `${summary.lossesSurvived}, away for ${(summary.outageMs / 1000).toFixed(1)} s`],
    ["calls/s", summary.callsPerSecond.toFixed(0)],
    [
      "cold : warm",
      `${summary.coldMs.toFixed(1)} ms : ${summary.warmMs.toFixed(1)} ms = ${summary.coldToWarm.toFixed(1)}`,
    ],
  ] as const;
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}
