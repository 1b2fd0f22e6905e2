/** One kind of cleaning up. Each step may run twice, on two watchers at once, and be cut off anywhere. */
export interface RetentionStep {
  readonly name: string;
  /** Returns how many items were handled, at most `limit`; the next sweep handles the rest. */
  run(limit: number): Promise<number>;
}
