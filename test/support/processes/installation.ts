/**
 * One installation for all tests of a file, or of a `describe`: started before the first and gone after the last. Call
 * it where the tests are; what it gives beside the journal is there once it has started.
 */
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { Duration, InstanceHandle } from "../../../shared/sdk/index.ts";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { Streams } from "../nats/streams.ts";
import { Journal } from "./journal.ts";
import { Stack, type StackOptions } from "./stack.ts";

export interface InstallationOptions extends StackOptions {
  /** Name of the module in `test/apps`. */
  app: string;
  /** Listens to the leases of sessions from the beginning, and checks their owners with every result. */
  leases?: boolean;
  /** Each test runs workers of its own; whatever it did to them, the next one meets none. */
  killWorkersAfterEach?: boolean;
  /**
   * What the tests need of the installation besides, made with it: a further service, a connection, a process id. A test
   * that is tried again meets a new installation, of which a `beforeAll` in the file would know nothing.
   */
  prepare?: (stack: Stack) => Promise<void> | void;
}

export function installation({
  leases: watched,
  killWorkersAfterEach,
  prepare,
  ...options
}: InstallationOptions) {
  const journal = new Journal();
  let stack: Stack | undefined;
  let streams: Streams | undefined;
  let leases: LeaseLog | undefined;

  const begin = async (): Promise<void> => {
    const app = fileURLToPath(new URL(`../../apps/${options.app}.ts`, import.meta.url));
    stack = await Stack.start({ ...options, app, env: { ...journal.env, ...options.env } });
    streams = new Streams(stack);
    if (watched) leases = await LeaseLog.start(stack);
    await prepare?.(stack);
  };
  const end = async (): Promise<void> => {
    await leases?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  };
  beforeAll(begin);
  // What is tried again has the same ids: it must meet nothing of its first try.
  beforeEach(async ({ task }) => {
    if ((task.result?.retryCount ?? 0) === 0) return;
    await end();
    journal.clear();
    await begin();
  }, 120_000);
  afterAll(async () => {
    await end();
    journal[Symbol.dispose]();
  });
  if (killWorkersAfterEach) {
    afterEach(async () => {
      expect(leases?.violations() ?? []).toEqual([]);
      for (const worker of world.stack.of("worker")) {
        worker.resume();
        worker.kill("SIGKILL");
        await worker.exited;
      }
    });
  }

  const world = {
    journal,
    get stack() {
      return there(stack, "stack");
    },
    get client() {
      return world.stack.client;
    },
    get streams() {
      return there(streams, "streams");
    },
    get leases() {
      return there(leases, "leases");
    },
    start: (name: string, input: unknown, id: string): Promise<InstanceHandle> =>
      world.client.start(name, input, { id }),
    /** What the laws say of an instance that has completed: the checker's word on it, and I6 of every session so far. */
    check: async (id: string): Promise<void> => {
      await world.streams.checkEnded([id]);
      expect(leases?.violations() ?? []).toEqual([]);
    },
    /** Its output, and the laws with it. */
    result: async <T = unknown>(id: string, timeout: Duration = "40s"): Promise<T> => {
      const value = await world.client.result<T>(id, { timeout });
      await world.check(id);
      return value;
    },
  };
  return world;
}

function there<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what}: asked for before the start, or never`);
  return value;
}
