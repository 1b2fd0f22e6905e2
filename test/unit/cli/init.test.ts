import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { dependencyAsInstalled } from "../../../services/cli/init/dependency.ts";
import { firstFiles } from "../../../services/cli/init/first-files.ts";
import { main } from "../../../services/cli/main.ts";

const run = async (...args: string[]) => {
  const finished = { code: 0 as number, stdout: "", stderr: "" };
  finished.code = await main(
    args,
    {},
    {
      stdout: { write: (text: string) => (finished.stdout += text) },
      stderr: { write: (text: string) => (finished.stderr += text) },
    },
  );
  return finished;
};

it("writes an application with a session and a test, and says what to do next", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "holdfast-init-")), "My App");
  const finished = await run("init", folder);
  expect(finished).toMatchObject({ code: 0, stderr: "" });
  expect(finished.stdout).toContain("npm test");
  expect(readdirSync(folder).sort()).toEqual([
    ".gitignore",
    "README.md",
    "app.ts",
    "package.json",
    "test.ts",
    "tsconfig.json",
  ]);
  const { name, scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  expect(name).toBe("my-app");
  expect(Object.keys(scripts).sort()).toEqual(["check", "dev", "test"]);
});

it("never writes over what is there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-init-"));
  writeFileSync(join(folder, "app.ts"), "mine");
  const refused = await run("init", folder);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("is not empty: nothing was written");
  expect(readFileSync(join(folder, "app.ts"), "utf8")).toBe("mine");
});

it("is the application of the README, as far as that goes", () => {
  const own = firstFiles("x", "1")["app.ts"] ?? "";
  for (const line of readFileSync("examples/first/app.ts", "utf8").split("\n")) {
    const code = (line.split(" //")[0] ?? "").trim();
    expect(own.replaceAll(/\s+/g, " ")).toContain(code.replaceAll(/\s+/g, " "));
  }
});

describe("depends on holdfast as it is installed", () => {
  const project = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-init-")));
  const dir = join(project, "node_modules", "holdfast");
  mkdirSync(dir, { recursive: true });
  const installedFrom = (resolved?: string) => {
    const packages = { "node_modules/holdfast": { version: "1.2.3", resolved } };
    writeFileSync(join(project, "node_modules", ".package-lock.json"), JSON.stringify({ packages }));
    return dependencyAsInstalled({ dir, version: "1.2.3" });
  };

  it.each([
    ["https://registry.example/holdfast/-/holdfast-1.2.3.tgz", "^1.2.3"],
    [undefined, "^1.2.3"],
    ["file:../holdfast-1.2.3.tgz", `file:${join(project, "..", "holdfast-1.2.3.tgz")}`],
    ["git+ssh://git@git.example/holdfast.git#0f3a", "git+ssh://git@git.example/holdfast.git#0f3a"],
  ])("from %s", (resolved, expected) => expect(installedFrom(resolved)).toBe(expected));

  it("from a clone", () => {
    expect(dependencyAsInstalled()).toBe(`file:${realpathSync(".")}`);
    expect(dependencyAsInstalled({ dir: tmpdir(), version: "1.2.3" })).toBe(`file:${realpathSync(tmpdir())}`);
  });
});
