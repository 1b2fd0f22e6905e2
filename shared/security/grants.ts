/** A permission with its reason, what narrows the permissions of a user, and grants that several roles have. */
import { entry, kv, purge, read, streamNames, view } from "./jetstream-subjects.ts";

/** Subjects begin with `{.}`, and names of streams and buckets contain `{_}`, where the prefix goes. */
export interface Grant {
  why: string;
  publish?: readonly string[];
  subscribe?: readonly string[];
}

/** Narrows a worker or a client. A field left out narrows nothing. */
export interface Scope {
  /**
   * For a worker or a client: the group whose user it logs in as. Groups have inboxes of their own and cannot
   * read each other's.
   */
  group?: string | undefined;
  /** For a worker: the activities it runs, by queue and name. */
  activities?: readonly { queue: string; name: string }[];
  /** For a worker: pools whose calls it takes. */
  pools?: readonly string[];
  /**
   * For a worker: session types it opens. For a client: types whose sessions it calls by key; a client of some
   * orchestrations calls none if this is left out.
   */
  sessionTypes?: readonly string[];
  /** For a client: orchestrations it may start. */
  orchestrations?: readonly string[];
  /**
   * For orchestrators and watchers: each history has a stream of its own, which requires the permission to
   * create and delete streams.
   */
  ownHistories?: boolean;
}

/** Big values in the object store. */
export const blobs = { write: ["$O.{_}blobs.>", ...purge("OBJ_{_}blobs")], read: view("OBJ_{_}blobs") };
/** For installations in which each history has a stream of its own. */
export const ownStreams: Grant = {
  why: "a stream of its own for each history",
  publish: ["$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.DELETE.*", "$JS.API.CONSUMER.CREATE.*.*.>"],
};
/** A permission cannot name part of a stream name: it names one stream or all of them. */
export const anyHistory = [...read("*"), streamNames];
/** Every service reads which versions are alive before it writes a newer generation (E1). */
export const fleet: Grant = {
  why: "reads which versions are alive",
  publish: view(kv("services"), kv("workers")),
};
/** Every service reports that it is alive. */
export const beacon: Grant = {
  why: "reports that it is alive",
  publish: [entry("services", "*.*"), "{.}pulse"],
};
