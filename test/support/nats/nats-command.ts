/**
 * The part of the `nats` command that the documents use, so that their commands run where it is not installed:
 * `nats pub [--jetstream] <subject> <body>`, `nats req <subject> <body>`, `nats micro info <name>`, all with
 * `-H name:value`. `npm run test:clients` runs them with the real one.
 */
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";

const words = process.argv.slice(2);
const sent = headers();
const plain: string[] = [];
let stored = false;
for (let at = 0; at < words.length; at++) {
  const word = words[at] ?? "";
  if (word === "-H") {
    const [, name = "", value = ""] = /^([^:]+):(.*)$/s.exec(words[++at] ?? "") ?? [];
    sent.set(name, value);
  } else if (word === "--jetstream") stored = true;
  else plain.push(word);
}
const [verb = "", subject = "", body = ""] = plain;

async function ask(nats: NatsConnection, to: string): Promise<string> {
  const answer = await nats.request(to, body, { headers: sent, timeout: 30_000 });
  const text = answer.string();
  if (/"ok":\s*false|"error":/.test(text)) throw new Error(`${to} answered ${text}`);
  return text;
}

const nats = await connect({ servers: process.env.NATS_URL ?? "", inboxPrefix: "_INBOX" });
try {
  if (verb === "pub" && stored) process.stdout.write(`Stored: ${await ask(nats, subject)}\n`);
  else if (verb === "req") process.stdout.write(`${await ask(nats, subject)}\n`);
  else if (verb === "micro") process.stdout.write(`${await ask(nats, `$SRV.INFO.${body}`)}\n`);
  // Without --jetstream there is no answer that says whether the message was stored.
  else throw new Error(`nats ${words.join(" ")}: the documents are not known to use this`);
} finally {
  await nats.close();
}
