/**
 * The host names by which a browser may call the gateway. A page of another site can point its own name at
 * 127.0.0.1 (DNS rebinding); it cannot do that with an address or with `localhost`, so those always pass and
 * any other name must be listed.
 */
import { isIP } from "node:net";

export function hostAllowed(host: string | undefined, allowed: readonly string[]): boolean {
  const name = hostnameOf(host);
  if (name === undefined) return false;
  if (name === "localhost" || name.endsWith(".localhost") || isIP(name) !== 0) return true;
  return allowed.some((entry) => entry.toLowerCase() === name);
}

/** Without port and brackets, in lower case. */
export function hostnameOf(host: string | undefined): string | undefined {
  if (!host) return undefined;
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/@]+))(?::\d{1,5})?$/.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

export const isLoopback = (address: string): boolean =>
  address === "localhost" || address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(address);

/**
 * A write must come from our own pages or from no page at all. Browsers send `Sec-Fetch-Site` and `Origin`,
 * which scripts cannot forge; programs send neither.
 */
export function writeAllowedFrom(headers: {
  origin: string | undefined;
  secFetchSite: string | undefined;
  host: string | undefined;
}): boolean {
  const { origin, secFetchSite, host } = headers;
  if (secFetchSite !== undefined && secFetchSite !== "same-origin" && secFetchSite !== "none") return false;
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === host?.toLowerCase();
}
