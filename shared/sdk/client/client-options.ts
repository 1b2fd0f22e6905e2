/** How a client connects, and the options of its methods. */
import type { BlobRef, FlowOptions } from "../../../schemas/index.ts";
import type { Bus, BusOptions, Payloads, Subjects } from "../../bus/index.ts";
import type { InputArguments } from "../../definitions/index.ts";
import type { Duration, Runtime } from "../../runtime/index.ts";
import type { ViewOptions } from "./instances.ts";

/** @internal Services build a client from these parts. */
export interface ClientOptions {
  bus: Bus;
  names?: Subjects;
  runtime?: Runtime;
}

/** Shared by all parts of a client. */
export interface ClientParts {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  payloads: Payloads;
}

/** How `connect` reaches NATS: address, credentials, TLS and prefix. */
export type ClientConnectOptions = Omit<BusOptions, "announce" | "blobBucket" | "url"> & {
  /** Address of a NATS server, or of several servers of one cluster. Found by `connect` if left out. */
  url?: BusOptions["url"];
  /** `HOLDFAST_PREFIX` of the installation. */
  prefix?: string;
};

/** The id of an instance, its delay, its limits, or an input that is in the object store already. */
export interface StartOptions {
  /** Your own id: starting the same id again changes nothing. Generated if left out. */
  id?: string | undefined;
  /** The instance starts after this delay. */
  delay?: Duration | undefined;
  /** Limits by key: how many instances run at a time, how often they start, which of several runs. */
  flow?: FlowOptions | undefined;
  /** Reference to an input that is in the object store already; instead of an input. */
  inputBlob?: BlobRef | undefined;
}

/** How long a query waits for its answer. */
export interface QueryOptions {
  /** Rejects with `query_timeout` after this long. Default 10 s. */
  timeout?: Duration | undefined;
}

export type QueryArguments<I> = InputArguments<I, QueryOptions>;

/** The id of an update and what its caller waits for. */
export interface UpdateOptions {
  /**
   * Your own id: sending the same id again changes nothing and returns the same answer. Generated if left
   * out.
   */
  id?: string | undefined;
  /** Rejects with `update_timeout` after this long; the update may still be applied. Default 30 s. */
  timeout?: Duration | undefined;
  signal?: AbortSignal | undefined;
}

export type UpdateArguments<I> = InputArguments<I, UpdateOptions>;

/** An update that was accepted. */
export interface UpdateHandle<O = unknown> {
  readonly updateId: string;
  /** Returns the handler's answer; throws the handler's error if it failed. */
  result(options?: Omit<UpdateOptions, "id">): Promise<O>;
}

/** How long to wait for a result. */
export interface ResultOptions {
  /** Rejects with `result_timeout` after this long; the instance continues. */
  timeout?: Duration | undefined;
  signal?: AbortSignal | undefined;
}

/** How long to wait for the end of an instance, and what to read of it. */
export interface WaitForEndOptions extends ViewOptions {
  signal?: AbortSignal | undefined;
  /** The instance is known to exist, even if it has no summary yet. */
  known?: boolean | undefined;
  /** Also return when the instance is parked and stays parked for a moment. */
  untilParked?: boolean | undefined;
}

/** Options for a handle, which knows that its instance exists. */
export type KnownResultOptions = ResultOptions & { known?: boolean; justStarted?: boolean };
