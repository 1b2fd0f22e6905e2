/**
 * E1: what earlier versions wrote is read for ever. `test/golden/wire/v1` was written by the code of 0.1.0 (commit
 * f3b259f) and is never written again; a change that makes this test fail would break installations that exist.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Commit } from "../../../schemas/index.ts";
import { collectApp } from "../../../shared/definitions/index.ts";
import { historyFile } from "../../../shared/sdk/replaying/history-file.ts";
import { replayHistory } from "../../../shared/sdk/replaying/replay-history.ts";
import { programs } from "../../golden/wire/v1/programs.ts";
import { asLaterVersion } from "../../support/documents/later-version.ts";
import { everyWired } from "../../support/documents/wire-schemas.ts";

const folder = fileURLToPath(new URL("../../golden/wire/v1/", import.meta.url));
const files = (under: string): string[] => readdirSync(`${folder}${under}`).sort();
const lines = (path: string): unknown[] =>
  readFileSync(`${folder}${path}`, "utf8")
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));

const schemas = new Map(everyWired().map(({ name, schema }) => [`${name}.jsonl`, schema]));

test("there are samples of everything there was", () => {
  expect(files("samples")).toHaveLength(31);
  expect(files("samples").filter((file) => !schemas.has(file))).toEqual([]);
  expect(files("made").filter((file) => !schemas.has(file))).toEqual([]);
});

describe.each(["made", "samples"])("%s", (kind) => {
  test.each(files(kind))("%s is read, and loses nothing", (file) => {
    const schema = schemas.get(file);
    for (const value of lines(`${kind}/${file}`)) {
      const read = schema?.parse(value);
      expect(JSON.parse(JSON.stringify(read))).toMatchObject(Object(value));
      // And so is the same with fields of a later version, which are kept.
      if (!schema) continue;
      const later = asLaterVersion(schema, value);
      expect(JSON.parse(JSON.stringify(schema.parse(later)))).toMatchObject(Object(later));
    }
  });
});

test.each(files("histories"))("%s is replayed by the code that wrote it", async (file) => {
  const commits = lines(`histories/${file}`).map((line) => Commit.parse(line));
  const [{ instanceId } = { instanceId: "none" }] = commits;
  const outcome = await replayHistory(collectApp(programs()), historyFile(instanceId, commits));
  expect(outcome).toMatchObject({ kind: "agrees", instanceId });
});
