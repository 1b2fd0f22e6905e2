/** Addresses of NATS servers: what counts as one, and how one may be shown. */

/** A scheme the client knows or none, perhaps who logs in, a host, perhaps a port. */
const address =
  /^((nats|tls|ws|wss):\/\/)?(?!\S*:\/\/)(\S+@)?(\[[0-9a-fA-F:.]+\]|[^\s@/:[\]]+)(:\d{1,5})?\/?$/;

export const isAddress = (text: string): boolean => address.test(text);

export const addressRule = "must be an address like nats://127.0.0.1:4222 or host:4222";

/** Never with a user or a password in it; several may be separated by commas. */
export const maskUrl = (url: string): string => url.replaceAll(/\/\/[^@/,]*@/g, "//***@");
