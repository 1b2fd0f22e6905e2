/** One kind of clearing away. Each may be done twice, by two watchers at once, and be cut off anywhere. */
export interface RetentionStep {
  readonly name: string;
  /** How many were done, at most `limit`; the rest is for the next sweep. */
  run(limit: number): Promise<number>;
}
