/** Names of resources: what a session's token comes back to. */

/** Where nobody chose one: the machine, which its workers share. Host names have dots; tokens of subjects do not. */
export const resourceOfHost = (host: string): string =>
  host.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 128) || "host";
