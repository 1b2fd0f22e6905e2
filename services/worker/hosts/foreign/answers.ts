/** The answers that a host still owes, and the form each must have. */
import { BatchItem, type Failure, type FromHostMessage } from "../../../../schemas/index.ts";
import { Fault, HoldfastError, toFailure } from "../../../../shared/errors/index.ts";
import type { CheckedBatch, CheckedCall } from "../checked-call.ts";
import type { Item, Refusal } from "../isolated/protocol.ts";
import { extractBytes } from "./binary-parts.ts";

export type OpenRequest =
  | { kind: "call"; checked: CheckedCall }
  | { kind: "batch"; checked: CheckedCall; batch: CheckedBatch }
  | { kind: "checkpoint"; type: string }
  | { kind: "other" };

type Answered = (OpenRequest & { cancelled: boolean }) | { kind: "unasked"; why: Refusal };
type Done = Pick<Extract<FromHostMessage, { kind: "done" }>, "value" | "bytes">;

export class Answers {
  readonly #waiting = new Map<number, OpenRequest & { cancelled: boolean }>();
  #last = 0;

  wait(id: number, waiting: OpenRequest): void {
    this.#last = Math.max(this.#last, id);
    this.#waiting.set(id, { ...waiting, cancelled: false });
  }

  awaited(id: number): boolean {
    return this.#waiting.has(id);
  }

  /** Returns false if no request waits under this id. */
  cancel(id: number): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting) waiting.cancelled = true;
    return waiting !== undefined;
  }

  answered(id: number): Answered {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting) return waiting;
    return { kind: "unasked", why: id <= this.#last ? "second_reply" : "reply_to_no_request" };
  }

  /** Turns a host's answer into the worker's value. Throws if it is not of the form asked for. */
  static valueOf(waiting: OpenRequest, done: Done): unknown {
    const { value, bytes } = done;
    switch (waiting.kind) {
      case "call":
        return [itemOf(waiting.checked, value, bytes)];
      case "batch": {
        const { batch, checked } = waiting;
        return batch.merge(value, (result): Item => {
          const item = BatchItem.safeParse(result);
          if (!item.success) throw notAnItem(checked.what);
          return item.data.ok ? itemOf(checked, item.data.value, bytes) : item.data;
        });
      }
      case "checkpoint":
        if (value instanceof Uint8Array) return value;
        throw new Fault("application", {
          code: "invalid_checkpoint",
          message: `checkpoint of ${waiting.type} must be answered with bytes`,
        });
      case "other":
        return value;
    }
  }
}

const notAnItem = (what: string): Fault =>
  new Fault("application", {
    code: "invalid_batch_result",
    message: `${what} must answer a batch with items, each {"ok": true, "value"} or {"ok": false, "error"}`,
  });

function itemOf(checked: CheckedCall, value: unknown, bytes: Done["bytes"]): Item {
  try {
    const output = checked.check(value);
    const error = noBytes(output, bytes, `output of ${checked.what}`);
    return error ? { ok: false, error } : { ok: true, value: output };
  } catch (error) {
    return { ok: false, error: toFailure(error) };
  }
}

/** Results are JSON: bytes that no schema has turned into text cannot be recorded. */
export function noBytes(value: unknown, bytes: Done["bytes"], what: string): Failure | undefined {
  if (!bytes || bytes.length === 0) return undefined;
  const [left] = extractBytes({ value }).attachments;
  if (!left) return undefined;
  const path = left.at.slice(1).join(".");
  const message = `${what}: ${path === "" ? "it" : path} is bytes, and results are JSON: let the output schema turn them into text`;
  return toFailure(new HoldfastError({ code: "not_serialisable", message }));
}
