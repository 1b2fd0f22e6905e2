import { describe, expect, it } from "vitest";
import { type Commit, InstanceSummary } from "../../../schemas/index.ts";
import { historyTable, instanceTable, shownInstance } from "../../../services/cli/render/instances.ts";
import { exitCodeOf } from "../../../services/cli/terminal/exit-codes.ts";
import { Output } from "../../../services/cli/terminal/output.ts";
import { errorLine } from "../../../services/cli/terminal/report-error.ts";
import { brief, oneLine, pairs, span, table } from "../../../services/cli/terminal/text.ts";
import { Fault, HoldfastError } from "../../../shared/errors/index.ts";

describe("tables", () => {
  it("aligns columns and leaves no blanks at the end", () => {
    const rows = [
      { name: "a", n: 5 },
      { name: "longer", n: 1234 },
    ];
    expect(
      table(rows, [
        { title: "NAME", value: (row) => row.name },
        { title: "N", value: (row) => row.n, align: "right" },
      ]),
    ).toBe("NAME       N\na          5\nlonger  1234");
  });

  it("lets no control characters of users reach the terminal", () => {
    expect(oneLine("a\u001b[31mred\nb\u0007")).toBe("a [31mred b ");
    expect(table([{ x: "a\nb" }], [{ title: "X", value: (row) => row.x }])).toBe("X\na b");
    expect(pairs([["x", "1\r2"]])).toBe("x  1 2");
  });

  it("leaves out what is not known", () => {
    expect(
      pairs([
        ["id", "a"],
        ["parent", undefined],
        ["error", ""],
      ]),
    ).toBe("id  a");
  });

  it("shortens values and names spans", () => {
    expect(brief({ text: "x".repeat(50) }, 20)).toBe('{"text":"xxxxxxxxxx…');
    expect(brief(undefined)).toBe("");
    expect([span(12.4), span(1500), span(90_000), span(7_200_000), span(undefined)]).toEqual([
      "12 ms",
      "1.5 s",
      "1.5 min",
      "2.0 h",
      undefined,
    ]);
  });

  it("shows instances and histories", () => {
    const { v: _, ...view } = InstanceSummary.parse({
      v: 1,
      instanceId: "i1",
      name: "hello",
      status: "failed",
      execution: 1,
      events: 2,
      startedAt: 0,
      endedAt: 1500,
      updatedAt: 1500,
      error: { code: "boom", message: "it broke", retryable: false },
    });
    expect(instanceTable([view])).toBe(
      "ID  ORCHESTRATION  STATUS  STARTED                   TOOK  EVENTS\n" +
        "i1  hello          failed  1970-01-01 00:00:00.000  1.5 s       2",
    );
    expect(shownInstance(view)).toContain("error          it broke (boom)");
    const event = { id: 1, kind: "timer.created", fireAt: 7 } as Commit["events"][number];
    expect(historyTable([{ execution: 1, at: 3, ...event }])).toBe(
      "EXEC  ID  AFTER  EVENT          DETAILS\n   1   1   0 ms  timer.created  fireAt=1970-01-01 00:00:00.007",
    );
  });
});

describe("Output", () => {
  it("keeps data and words apart", () => {
    for (const json of [true, false]) {
      const said = { out: "", err: "" };
      const out = new Output(
        { stdout: { write: (text) => (said.out += text) }, stderr: { write: (text) => (said.err += text) } },
        json,
      );
      out.data({ a: 1 }, () => "one");
      out.note("by the way");
      expect(said).toEqual(json ? { out: '{"a":1}\n', err: "" } : { out: "one\n", err: "by the way\n" });
    }
  });
});

describe("errors", () => {
  const fault = (kind: "config" | "transient", code: string) =>
    new Fault(kind, { code, message: "m", hint: "h" });

  it("are one line, with the hint below", () => {
    expect(errorLine(fault("config", "c"), false)).toBe("holdfast: m (c)\n  h");
    expect(errorLine(fault("config", "c"), true)).toBe('{"error":{"code":"c","message":"m","hint":"h"}}');
    expect(errorLine(new Error("a\nb"), false)).toBe("holdfast: a b (error)");
    expect(errorLine("text", true)).toBe('{"error":{"code":"error","message":"text"}}');
  });

  it.each([
    [new HoldfastError({ code: "instance_not_found", message: "" }), 3],
    [new HoldfastError({ code: "result_timeout", message: "" }), 4],
    [new HoldfastError({ code: "instance_ended", message: "" }), 1],
    [new HoldfastError({ code: "invalid_input", message: "" }), 2],
    [fault("config", "nats_unreachable"), 5],
    [fault("config", "nats_too_old"), 5],
    [fault("transient", "no_stream"), 5],
    [fault("config", "invalid_config"), 2],
    [new Error("?"), 1],
  ])("%s leads to exit code %i", (error, code) => {
    expect(exitCodeOf(error)).toBe(code);
  });
});
