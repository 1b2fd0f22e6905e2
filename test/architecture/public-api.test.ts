import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { describeApi, publicApi } from "../support/documents/public-api.ts";

const root = resolve(import.meta.dirname, "../..");

test("the public API is what docs/api.md says; after a change meant so: npm run build && npm run api", () => {
  expect(describeApi(publicApi())).toBe(readFileSync(join(root, "docs/api.md"), "utf8"));
});

test("every exported name has a comment", () => {
  const silent = [...publicApi()].flatMap(([path, names]) =>
    names.filter(({ documented }) => !documented).map(({ name }) => `${path}: ${name}`),
  );
  expect(silent).toEqual([]);
});

/**
 * Types that nobody has to name: they say how the types of arguments follow from a definition, or hide what a value
 * carries for the engine alone.
 */
const unnamed = [
  ...["brand", "Opaque", "StateQuery", "MessageDefinition", "MessageSpec", "Input", "Output"],
  ...["CallShape", "CallBase", "BatchCallSpec", "SingleCallSpec", "CallMade", "SessionCode"],
  ...["QueryArguments", "UpdateArguments", "QueryOf", "UpdateOf", "Values", "BusOptions", "MaybePromise"],
  ...["Runner", "Entry"],
];

test("a type that the surface mentions can be imported", () => {
  const api = publicApi();
  const names = (path: string) => (api.get(path) ?? []).map(({ name }) => name);
  const missing = [...api].flatMap(([path, exported]) => {
    if (path === "holdfast/schemas") return [];
    const client = path === "holdfast/client";
    const known = new Set([...(client ? [] : names("holdfast")), ...names(path)]);
    for (const name of [...names("holdfast/schemas"), ...unnamed]) known.add(name);
    // A client is given definitions; what makes them is imported from "holdfast".
    const asked = exported.filter(({ name }) => !client || !/Definition$|^(?:In|Out)putOf$/.test(name));
    return asked.flatMap(({ name, mentions }) =>
      mentions.filter((one) => !known.has(one)).map((one) => `${path}: ${one}, which ${name} mentions`),
    );
  });
  expect(missing).toEqual([]);
});

test("nothing internal is part of it", () => {
  const names = (publicApi().get("holdfast") ?? []).map(({ name }) => name);
  for (const internal of ["ClientOptions", "validate", "kindOf", "DefinitionKind", "refuseUnknownOptions"])
    expect(names).not.toContain(internal);
});

test("holdfast/client imports nothing that only services need", () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, path = ""] of readFileSync(file, "utf8").matchAll(
      /(?:from|import|require)\s*\(?"([^"]+)"/g,
    ))
      if (path.startsWith(".")) visit(join(dirname(file), path));
      else expect(path, file).not.toMatch(/^(?:tsx|esbuild|hono|@hono|pino|prom-client|commander)/);
  };
  visit(join(root, "dist/shared/sdk/client-entry.js"));
  // Each module of a bundle begins with a comment that names it.
  const modules = [...seen].flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/^\/\/(?:#region)? \.build\/(.+)$/gm)].map(
      ([, module = ""]) => module,
    ),
  );
  expect(modules).toContain("shared/sdk/client/client.js");
  expect(
    modules.filter((file) => /^(?:services|shared\/(?:replay|app-loading|inference|embedded))/.test(file)),
  ).toEqual([]);
});
