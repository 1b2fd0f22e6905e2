import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { bashCompletion } from "../../../services/cli/completion/bash.ts";
import { specOf } from "../../../services/cli/completion/command-tree.ts";
import { fishCompletion } from "../../../services/cli/completion/fish.ts";
import { zshCompletion } from "../../../services/cli/completion/zsh.ts";
import { program } from "../../../services/cli/program.ts";

const silence = { write: () => true };
const root = specOf(program({ env: {}, stdout: silence, stderr: silence, exitCode: 0 }));

/** What bash itself offers after these words. */
function offered(...words: string[]): string[] {
  const script = `${bashCompletion(root)}
COMP_WORDS=(${["holdfast", ...words].map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length}
_holdfast
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync("bash", ["-c", script], { encoding: "utf8" });
  return out.split("\n").filter((line) => line !== "");
}

describe("bash completion", () => {
  it("offers commands, sub-commands, options and values", () => {
    expect(offered("st")).toEqual(["start", "start-again", "stream"]);
    expect(offered("sessions", "")).toContain("explain");
    expect(offered("sessions", "e")).toEqual(["explain", "evict"]);
    expect(offered("sessions", "list", "--ph")).toEqual(["--phase"]);
    expect(offered("sessions", "list", "--phase", "lo")).toEqual(["lost"]);
    expect(offered("list", "--status", "c")).toEqual(["completed", "cancelled"]);
    expect(offered("terminate", "w1", "--y")).toEqual(["--yes"]);
    expect(offered("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(offered("replay", "h.json", "--app", "")).toEqual([]);
  });

  it("is not led astray by values that look like commands", () => {
    expect(offered("start", "list", "--inp")).toEqual(["--input"]);
  });
});

it("zsh and fish know every command and every option", () => {
  for (const script of [zshCompletion(root), fishCompletion(root)]) {
    for (const word of ["sessions", "explain", "discard", "completion", "terminated", "rebuilding"])
      expect(script).toContain(word);
    expect(script).not.toMatch(/undefined|\[object/);
  }
  expect(zshCompletion(root)).toContain("'--yes:do not ask; needed where there is no terminal'");
  expect(zshCompletion(root)).toContain("'sessions:sessions\\: show holders");
  expect(fishCompletion(root)).toContain(
    `complete -c holdfast -n "__holdfast_at '/list'" -l status -x -a 'pending running parked`,
  );
  expect(fishCompletion(root)).toContain(`-l verbose -s v -d 'say on stderr how it is done'`);
});
