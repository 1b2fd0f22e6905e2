/**
 * The address of the caller behind proxies. `X-Forwarded-For` is trusted only if the connection comes from a
 * proxy that is named in the settings: the caller is the last address in it that is no such proxy. The caller
 * itself may have written any address before that one.
 */
import { BlockList, isIP } from "node:net";

export class TrustedProxies {
  readonly #list = new BlockList();

  /** Addresses and networks: `10.0.0.5`, `10.0.0.0/8`, `fd00::/8`. Throws if an entry is neither. */
  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address = "", bits] = entry.split("/");
      const family = isIP(address) === 6 ? "ipv6" : "ipv4";
      if (isIP(address) === 0) throw new RangeError(`${entry} is no address`);
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  trusts(address: string): boolean {
    const plain = plainAddress(address);
    const version = isIP(plain);
    return version !== 0 && this.#list.check(plain, version === 6 ? "ipv6" : "ipv4");
  }

  /** `peer`: the other end of the connection. */
  callerOf(peer: string, forwardedFor: string | undefined): string {
    if (!this.trusts(peer)) return plainAddress(peer);
    const hops = (forwardedFor ?? "").split(",").map((hop) => plainAddress(hop.trim()));
    for (const hop of hops.reverse()) {
      // A proxy that wrote no address hides its callers: they share its limit.
      if (isIP(hop) === 0) break;
      if (!this.trusts(hop)) return hop;
    }
    return plainAddress(peer);
  }

  /** Returns true if the nearest proxy reports that the caller's own connection is https. */
  isHttps(peer: string, forwardedProto: string | undefined): boolean {
    return this.trusts(peer) && forwardedProto?.split(",").at(-1)?.trim().toLowerCase() === "https";
  }
}

/** Without the port that some proxies add, and without the IPv6 form of an IPv4 address. */
function plainAddress(text: string): string {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? [];
  const [, v4] = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text) ?? [];
  return (bracketed ?? v4 ?? text).replace(/^::ffff:(?=\d+\.)/i, "");
}
