/** The inbox messages that the last commit records, and those that the next one will (T3, T7). */
export class RecordedMessages {
  #next: number[] = [];
  #last: readonly number[] = [];

  /** A new execution begins: its first commit records again what earlier executions applied. */
  begin(carried: number[]): void {
    this.#next = carried;
  }

  /** The message with this sequence became a fact of this turn. */
  add(seq: number): void {
    this.#next.push(seq);
  }

  /** Sequences to record with the commit of this turn; the commit records `anchor` separately. */
  pop(anchor: number | undefined): number[] {
    const inbox = this.#next;
    this.#next = [];
    this.replayed(inbox, anchor);
    return inbox;
  }

  /** The last commit recorded these: redelivery of one of them means that its effects may not be published. */
  replayed(inbox: readonly number[], anchor: number | undefined): void {
    this.#last = anchor === undefined ? inbox.slice() : [...inbox, anchor];
  }

  isOfLastCommit(seq: number): boolean {
    return this.#last.includes(seq);
  }
}
