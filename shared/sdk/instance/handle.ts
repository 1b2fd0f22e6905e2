/** The handle of one instance, returned by `client.start` and `client.get`. */
import type {
  AnySignal,
  InputArguments,
  QueryDefinition,
  SignalIn,
  UpdateDefinition,
} from "../../definitions/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { Client } from "../client/client.ts";
import type {
  QueryArguments,
  QueryOptions,
  ResultOptions,
  UpdateArguments,
  UpdateOptions,
} from "../client/client-options.ts";
import type { InstanceView } from "../client/instances.ts";
import type { HistoryEntry } from "../replaying/history-file.ts";
import type { SignalOptions } from "./message-id.ts";

/** `client.query` without its first argument. */
export interface QueryOf {
  <I, O>(query: QueryDefinition<I, O>, ...rest: QueryArguments<I>): Promise<O>;
  (query: string, input?: unknown, options?: QueryOptions): Promise<unknown>;
}

/** `client.update` without its first argument. */
export interface UpdateOf {
  <I, O>(update: UpdateDefinition<I, O>, ...rest: UpdateArguments<I>): Promise<O>;
  (update: string, input?: unknown, options?: UpdateOptions): Promise<unknown>;
}

/** One instance, for the caller that started it or knows its id. */
export interface InstanceHandle<O = unknown> {
  readonly instanceId: string;
  /**
   * Waits for the end. Rejects with the instance's own error if it failed. On a handle from a start with a
   * definition, the output is parsed with the definition's schema; rejects with `invalid_output` if it does
   * not fit.
   */
  result(options?: ResultOptions): Promise<O>;
  /** The present status, with input, output and custom status. */
  status(): Promise<InstanceView>;
  /** Sends a signal, by its definition or by a plain name. */
  signal<S extends AnySignal | string>(
    signal: S,
    ...rest: InputArguments<SignalIn<S>, SignalOptions>
  ): Promise<void>;
  /** Same as `client.update`. */
  update: UpdateOf;
  /** Same as `client.query`. */
  query: QueryOf;
  /** Asks the code to end; it may clean up first. */
  cancel(reason?: string): Promise<void>;
  /** Ends the instance at once; its code does not clean up. */
  terminate(reason?: string): Promise<void>;
  /** All stored events of all executions. */
  history(): Promise<HistoryEntry[]>;
}

/** A caller that asks for the result this soon after the start most likely asks before the end. */
const justStartedMs = 2;

/** What a handle from `start` knows of its instance. */
interface Started<O> {
  clock: Clock;
  /** Monotonic time at which the start was accepted. */
  at: number;
  /** Returns the output if it matches the definition's schema; throws otherwise. */
  checked(output: unknown): O;
}

export const handleOf = <O>(client: Client, instanceId: string, started?: Started<O>): InstanceHandle<O> => ({
  instanceId,
  result: async (options) => {
    if (!started) return client.result<O>(instanceId, options);
    const justStarted = started.clock.monotonic() - started.at < justStartedMs;
    return started.checked(await client.result(instanceId, { ...options, known: true, justStarted }));
  },
  status: () => client.status(instanceId),
  signal: (signal, ...rest) => client.signal(instanceId, signal, ...rest),
  query: queryOf(client, instanceId),
  update: updateOf(client, instanceId),
  cancel: (reason) => client.cancel(instanceId, reason),
  terminate: (reason) => client.terminate(instanceId, reason),
  history: () => client.history(instanceId),
});

function queryOf(client: Client, instanceId: string): QueryOf {
  function query<I, O>(asked: QueryDefinition<I, O>, ...rest: QueryArguments<I>): Promise<O>;
  function query(asked: string, input?: unknown, options?: QueryOptions): Promise<unknown>;
  function query(asked: QueryDefinition | string, input?: unknown, options?: QueryOptions): Promise<unknown> {
    return typeof asked === "string"
      ? client.query(instanceId, asked, input, options)
      : client.query(instanceId, asked, input, options);
  }
  return query;
}

function updateOf(client: Client, instanceId: string): UpdateOf {
  function update<I, O>(asked: UpdateDefinition<I, O>, ...rest: UpdateArguments<I>): Promise<O>;
  function update(asked: string, input?: unknown, options?: UpdateOptions): Promise<unknown>;
  function update(
    asked: UpdateDefinition | string,
    input?: unknown,
    options?: UpdateOptions,
  ): Promise<unknown> {
    return typeof asked === "string"
      ? client.update(instanceId, asked, input, options)
      : client.update(instanceId, asked, input, options);
  }
  return update;
}
