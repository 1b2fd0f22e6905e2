/**
 * What a nats-server refused, read from its log.
 *
 * A right to answer belongs to the connection that the question was delivered to, until the server is started anew or
 * reads its configuration again. An answer on a later connection is refused, and that is no fault: it is asked again. An
 * answer refused on the connection that was asked is one. `tracing` tells them apart: it has the server write down what it
 * delivers, from its second start or its first reload on. Before that, nothing that is refused is excused.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const included = "tracing.conf";

/** A line for the configuration of a server on this data folder. Call `traceFromNow` once the server is up. */
export function tracing(dataDir: string): string {
  writeFileSync(join(dataDir, included), "");
  return `include ${included}\nlogfile_size_limit: 0`;
}

export const traceFromNow = (dataDir: string): void =>
  writeFileSync(join(dataDir, included), "trace: true\nmax_traced_msg_len: 1\n");

export interface Refusal {
  /** The server's name of the user: `nkey:<public key>`. */
  user: string;
  what: "Publish" | "Subscription";
  subject: string;
}

const line = /cid:(\d+) - (?:"[^"]*" - )?"(?:[^"/]*\/)?([^"]+)" - (.*)$/;

/** Every refusal that is a fault, in order. */
export function refusalsIn(dataDir: string): Refusal[] {
  const logs = readdirSync(dataDir).filter((name) => name.startsWith("nats-server.log"));
  return logs.sort().flatMap((name) => refusals(readFileSync(join(dataDir, name), "utf8")));
}

export function refusals(log: string): Refusal[] {
  const found: Refusal[] = [];
  const asked = new Set<string>();
  let changes = 0;
  for (const text of log.split("\n")) {
    if (/Starting nats-server|Reloaded server configuration/.test(text)) {
      changes++;
      asked.clear();
      continue;
    }
    const [, cid = "", user = "", said = ""] = line.exec(text) ?? [];
    const [, delivered] = /^->> \[H?MSG (.*)\]$/.exec(said) ?? [];
    const [, what, subject = ""] = /^(Publish|Subscription) Violation - Subject "([^"]+)"/.exec(said) ?? [];
    if (delivered) asked.add(`${cid} ${delivered.split(" ")[2]}`);
    if (what !== "Publish" && what !== "Subscription") continue;
    const isAnswer = what === "Publish" && subject.startsWith("_INBOX_");
    if (changes > 1 && isAnswer && !asked.has(`${cid} ${subject}`)) continue;
    found.push({ user, what, subject });
  }
  return found;
}
