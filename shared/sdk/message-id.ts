import { Fault } from "../errors/index.ts";

export interface SignalOptions {
  /**
   * What you call it: the same id again, to the same instance, changes nothing, however long after. To another instance
   * it is another signal. Of an instance that continues as new the latest thousand ids are remembered.
   */
  messageId?: string | undefined;
}

/** It goes into a header. */
export function requireMessageId(id: string): void {
  if (/^[\x21-\x7e]{1,256}$/.test(id)) return;
  throw new Fault("contract", {
    code: "invalid_id",
    message: `message id ${JSON.stringify(id.slice(0, 140))} is not allowed: must be 1 to 256 visible ASCII characters, no spaces`,
  });
}
