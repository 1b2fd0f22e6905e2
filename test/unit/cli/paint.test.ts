import { expect, it, vi } from "vitest";
import { LiveRegion } from "../../../services/cli/terminal/live-region.ts";
import { Output } from "../../../services/cli/terminal/output.ts";
import { colours, paintFor, plain, visibleLength } from "../../../services/cli/terminal/paint.ts";
import { table } from "../../../services/cli/terminal/text.ts";

it.each([
  [{}, true, colours],
  [{}, false, plain],
  [{ TERM: "dumb" }, true, plain],
  [{ NO_COLOR: "1" }, true, plain],
  [{ NO_COLOR: "" }, true, colours],
  [{ FORCE_COLOR: "1" }, false, colours],
  [{ FORCE_COLOR: "0" }, true, plain],
  [{ NO_COLOR: "1", FORCE_COLOR: "1" }, true, plain],
])("%o on a terminal (%s)", (env, isTTY, paint) => {
  expect(paintFor(env, { isTTY })).toBe(paint);
});

it("colours take no room in tables", () => {
  const columns = [
    { title: "STATUS", value: (text: string) => text, style: () => "green" as const },
    { title: "N", value: () => 1 },
  ];
  const painted = table(["completed", "ok"], columns, colours);
  expect(painted).toContain("\u001b[32mok       \u001b[39m  1");
  expect(painted.split("\n").map(visibleLength)).toEqual(
    table(["completed", "ok"], columns)
      .split("\n")
      .map((line) => line.length),
  );
});

it("progress is on stderr, on a terminal, for people", () => {
  vi.useFakeTimers();
  const shown = (isTTY: boolean, json: boolean) => {
    let said = "";
    const stderr = { isTTY, columns: 20, write: (text: string) => (said += text) };
    const stdout = { write: () => expect.unreachable("nothing but data on stdout") };
    const erase = new Output({ stdout, stderr }, json).progress(() => "waiting for a very long name");
    vi.advanceTimersByTime(300);
    erase();
    return said;
  };
  expect([shown(false, false), shown(true, true)]).toEqual(["", ""]);
  expect(shown(true, false)).toBe("\r\u001b[Kwaiting for a very…\r\u001b[K");
  vi.useRealTimers();
});

it("draws again in its place", () => {
  let said = "";
  const region = new LiveRegion({ write: (text) => (said += text), columns: 40, rows: 10 });
  expect([region.columns, region.rows]).toEqual([40, 9]);
  region.draw("one\ntwo");
  region.draw("three");
  expect(said).toBe("\rone\u001b[K\ntwo\u001b[K\n\u001b[J\u001b[2A\rthree\u001b[K\n\u001b[J");
});
