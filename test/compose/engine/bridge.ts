/**
 * The bridge of containers that name no network (testcontainers names none). It has a name of its own, so that neither an
 * engine of the machine nor a second test is disturbed, and it is removed at the end.
 */
import { networkInterfaces } from "node:os";
import { attempt } from "../command.ts";

export interface Bridge extends AsyncDisposable {
  readonly name: string;
}

/** Undefined where no bridge can be made: `ip` is missing, or forbids it. */
export async function makeBridge(): Promise<Bridge | undefined> {
  const name = `holdfast${process.pid}`;
  const ip = async (...args: string[]) => (await attempt("ip", args)).code === 0;
  const remove = async () => {
    await ip("link", "delete", name);
  };
  if (!(await ip("link", "add", name, "type", "bridge"))) return undefined;
  const address = freeAddress();
  if (
    address !== undefined &&
    (await ip("address", "add", address, "dev", name)) &&
    (await ip("link", "set", name, "up"))
  ) {
    return { name, [Symbol.asyncDispose]: remove };
  }
  await remove();
  return undefined;
}

/** In a private range that no interface of the machine is in; Docker gives its own networks 172.16/12 and 192.168/16. */
function freeAddress(): string | undefined {
  const used = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  for (let net = 213; net < 255; net++) {
    const range = `10.${net}.`;
    if (!used.some(({ address }) => address.startsWith(range))) return `${range}0.1/24`;
  }
  return undefined;
}
