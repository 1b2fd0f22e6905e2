import { Fault } from "../../errors/index.ts";

/** The id that makes a signal arrive once however often it is sent. */
export interface SignalOptions {
  /**
   * Your own id: the same id sent again to the same instance changes nothing, however much later. Sent to
   * another instance it is another signal. An instance that continues as new remembers its latest thousand
   * ids.
   */
  messageId?: string | undefined;
}

/** The id becomes a header, so it must be a valid header value. */
export function requireMessageId(id: string): void {
  if (/^[\x21-\x7e]{1,256}$/.test(id)) return;
  throw new Fault("contract", {
    code: "invalid_id",
    message: `message id ${JSON.stringify(id.slice(0, 140))} is not allowed: must be 1 to 256 visible ASCII characters, no spaces`,
  });
}
