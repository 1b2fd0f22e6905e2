import { expect, it } from "vitest";
import { Screen } from "../../../services/cli/dev/screen.ts";

function screenOn(isTTY: boolean) {
  const written: string[] = [];
  const screen = new Screen({ isTTY, write: (text) => written.push(text) });
  return { screen, written };
}

it("draws a bar in its place on a terminal, with lines above it", () => {
  const { screen, written } = screenOn(true);
  screen.note("before");
  screen.progress(0, 2, "mails");
  screen.progress(1, 2, "mails");
  screen.note("meanwhile");
  screen.progress(2, 2);
  screen.note("after");
  const half = `[${"#".repeat(15)}${".".repeat(15)}] 1/2  mails`;
  expect(written).toEqual([
    "before\n",
    `[${".".repeat(30)}] 0/2  mails`,
    `\r\u001b[K${half}`,
    `\r\u001b[Kmeanwhile\n${half}`,
    `\r\u001b[K[${"#".repeat(30)}] 2/2\n`,
    "after\n",
  ]);
});

it("writes a line for every tenth where there is no terminal, and no escapes", () => {
  const { screen, written } = screenOn(false);
  for (let done = 0; done <= 100; done++) screen.progress(done, 100);
  expect(written).toHaveLength(11);
  expect(written.join("")).not.toContain("\u001b");
  expect(written.at(-1)).toBe(`[${"#".repeat(30)}] 100/100\n`);
});
