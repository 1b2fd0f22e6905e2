/** Addresses of NATS servers: which texts are addresses, and how to show one. */

/** A scheme that the client knows or none, optional login, a host, an optional port. */
const address =
  /^((nats|tls|ws|wss):\/\/)?(?!\S*:\/\/)(\S+@)?(\[[0-9a-fA-F:.]+\]|[^\s@/:[\]]+)(:\d{1,5})?\/?$/;

export const isAddress = (text: string): boolean => address.test(text);

export const addressRule = "must be an address like nats://127.0.0.1:4222 or host:4222";

/** User and password of one address, which may have no scheme. */
const login = /^(\s*(?:[A-Za-z]+:\/\/)?)\S*@/;
/** Several addresses may be separated by commas. */
const withLogin = (url: string, shown: string): string =>
  url
    .split(",")
    .map((one) => one.replace(login, `$1${shown}`))
    .join(",");

/** Removes user and password, for files. */
export const withoutLogin = (url: string): string => withLogin(url, "");

export const maskUrl = (url: string): string => withLogin(url, "***@");
