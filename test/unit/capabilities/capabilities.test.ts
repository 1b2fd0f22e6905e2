/** What a capability is good for, and what not (C1); keys that change while work is under way. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newCapabilityKey, newSecurityFile, rotated } from "../../../services/cli/security/security-file.ts";
import { KeysFile } from "../../../services/orchestrator/capabilities/keys-file.ts";
import {
  capabilityKey,
  derivedCapability,
  detailsKey,
  KeyedCapabilities,
} from "../../../shared/capabilities/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { noLimits, roleNames } from "../../../shared/security/index.ts";

const made = (...keys: string[]) =>
  new KeyedCapabilities({ keys: () => keys.map(capabilityKey), mayWrite: () => true, acceptMissing: false });
const [one, two, three] = [newCapabilityKey(), newCapabilityKey(), newCapabilityKey()];
const task = { instanceId: "i", execution: 1, of: 2, attempt: 1 };
const session = { instanceId: "i", sessionId: "s", attachment: 2 };

test("is good for one attempt of one task, under one epoch", () => {
  const capabilities = made(one);
  const shown = capabilities.ofTask(task);
  expect(capabilities.doubtTask(task, shown)).toBeUndefined();
  for (const other of [{ instanceId: "j" }, { execution: 2 }, { of: 3 }, { attempt: 2 }])
    expect(capabilities.doubtTask({ ...task, ...other }, shown)).toBe("wrong");
  const call = capabilities.ofTask({ ...task, epoch: 7 });
  expect(capabilities.doubtTask({ ...task, epoch: 7 }, call)).toBeUndefined();
  expect(capabilities.doubtTask({ ...task, epoch: 8 }, call)).toBe("wrong");
  expect(
    capabilities.doubtTask({ ...task, epoch: 7 }, shown),
    "of a queue, run by a member of a pool",
  ).toBeUndefined();
  expect(capabilities.doubtTask(task, undefined)).toBe("missing");
  expect(capabilities.doubtTask(task, "")).toBe("wrong");
  expect(made(two).doubtTask(task, shown)).toBe("wrong");
});

test("of a claim is good for its attachment and those its holder takes by itself", () => {
  const capabilities = made(one);
  const shown = capabilities.ofSession(session);
  for (const attachment of [2, 3, 4])
    expect(capabilities.doubtSession({ ...session, attachment }, shown)).toBeUndefined();
  expect(capabilities.doubtSession({ ...session, attachment: 1 }, shown)).toBe("wrong");
  expect(capabilities.doubtSession({ ...session, sessionId: "t" }, shown)).toBe("wrong");
  expect(capabilities.doubtSession(session, shown?.replace("c2", "c1"))).toBe("wrong");
});

test("a derived one is good for its purpose alone", () => {
  const capabilities = made(one);
  const beat = derivedCapability(capabilities.ofTask(task) ?? "", "beat");
  expect(capabilities.doubtTask(task, beat, "beat")).toBeUndefined();
  expect(capabilities.doubtTask(task, beat, "stream")).toBe("wrong");
  expect(capabilities.doubtTask(task, beat)).toBe("wrong");
  const lost = derivedCapability(capabilities.ofSession(session) ?? "", "lost");
  expect(capabilities.doubtSession(session, lost, "lost")).toBeUndefined();
  expect(capabilities.doubtSession(session, lost)).toBe("wrong");
});

test("all attempts of a task have the same key of heartbeat details", () => {
  const capabilities = made(one);
  const first = detailsKey({ attempt: 1, capability: capabilities.ofTask(task) });
  expect(first).toBe(capabilities.ofDetails(task));
  expect(detailsKey({ attempt: 2, detailsKey: capabilities.ofDetails({ ...task }) })).toBe(first);
});

test("a start without bonds needs none", () => {
  const capabilities = made(one);
  const parent = { instanceId: "p", execution: 1, of: 2 };
  const granted = [{ sessionId: "s", owner: "p" }];
  expect(capabilities.ofStart("i", {})).toBeUndefined();
  expect(capabilities.doubtStart("i", { granted: [] }, undefined)).toBeUndefined();
  const shown = capabilities.ofStart("i", { parent, granted });
  expect(capabilities.doubtStart("i", { parent, granted }, shown)).toBeUndefined();
  expect(capabilities.doubtStart("j", { parent, granted }, shown)).toBe("wrong");
  expect(capabilities.doubtStart("i", { parent, granted: [{ sessionId: "t", owner: "p" }] }, shown)).toBe(
    "wrong",
  );
  expect(capabilities.doubtStart("i", { parent }, undefined)).toBe("missing");
});

test("without permission to write there are none; in an upgrade none is needed, and a wrong one is refused", () => {
  let missing = 0;
  const mixed = new KeyedCapabilities({
    keys: () => [capabilityKey(one)],
    mayWrite: () => false,
    acceptMissing: true,
    onMissing: () => missing++,
  });
  expect([mixed.ofTask(task), mixed.ofSession(session), mixed.ofDetails(task)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(mixed.doubtTask(task, undefined)).toBeUndefined();
  expect(missing).toBe(1);
  expect(mixed.doubtTask(task, "q0123456789012345678901")).toBe("wrong");
});

test("keys change in two steps, and at each of them orchestrators before and after it believe each other", () => {
  const init = {
    mode: "nkey",
    port: 1,
    storeDir: "x",
    tenants: [""],
    prefix: "",
    limits: noLimits,
    scope: {},
  } as const;
  const steps = [newSecurityFile(init)];
  for (const step of ["begin", "finish", "begin", "finish"] as const)
    steps.push(rotated(steps.at(-1) ?? newSecurityFile(init), step, roleNames));
  const at = steps.map(({ tenants }) => made(...(tenants[0]?.capabilityKeys ?? [])));
  for (const [n, before] of at.entries()) {
    const after = at[n + 1] ?? before;
    expect(after.doubtTask(task, before.ofTask(task)), `step ${n}`).toBeUndefined();
    expect(before.doubtTask(task, after.ofTask(task)), `step ${n}`).toBeUndefined();
  }
  expect(at[4]?.doubtTask(task, at[0]?.ofTask(task)), "the key before the last is gone").toBe("wrong");
});

test("the file of keys is read again when a capability fits none of them, and not for every forgery", () => {
  const path = join(mkdtempSync(join(tmpdir(), "holdfast-keys-")), "keys");
  let now = 0;
  const clock = { monotonic: () => now, now: () => now, after: () => ({ cancel: () => undefined }) };
  const write = (...keys: string[]) => writeFileSync(path, keys.map((key) => `${key}\n`).join(""));
  expect(() => new KeysFile(path, { clock, announce: silent })).toThrow(/cannot be read/);
  writeFileSync(path, "short\n");
  expect(() => new KeysFile(path, { clock, announce: silent })).toThrow(/one key a line/);
  write(one);
  const file = new KeysFile(path, { clock, announce: silent });
  const capabilities = new KeyedCapabilities({ ...file, mayWrite: () => true, acceptMissing: false });
  write(one, two);
  expect(capabilities.doubtTask(task, made(two).ofTask(task)), "too soon").toBe("wrong");
  now += 1_000;
  expect(capabilities.doubtTask(task, made(two).ofTask(task))).toBeUndefined();
  now += 1_000;
  rmSync(path);
  expect(capabilities.doubtTask(task, made(three).ofTask(task))).toBe("wrong");
  expect(capabilities.doubtTask(task, made(one).ofTask(task)), "what was known stays").toBeUndefined();
});
