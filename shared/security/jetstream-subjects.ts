/**
 * The JetStream requests the engine makes, as subjects for permissions. `{.}` and `{_}` stand for the prefix.
 */

const api = "$JS.API";

/** Reads a stream's state and messages. */
export const read = (...streams: string[]): string[] =>
  streams.flatMap((stream) => [
    `${api}.STREAM.INFO.${stream}`,
    `${api}.STREAM.MSG.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}.>`,
  ]);

/** Like `read`, and follows every change with an ephemeral consumer of a secret name. */
export const view = (...streams: string[]): string[] => [
  ...read(...streams),
  ...streams.flatMap((stream) => [
    `${api}.CONSUMER.CREATE.${stream}.*.>`,
    `${api}.CONSUMER.MSG.NEXT.${stream}.*`,
    `${api}.CONSUMER.DELETE.${stream}.*`,
  ]),
];

/** Takes messages from a named consumer and settles them. */
export const take = (stream: string, consumer: string, filter: string): string[] => [
  `${api}.CONSUMER.CREATE.${stream}.${consumer}.${filter}`,
  `${api}.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
  `${api}.CONSUMER.INFO.${stream}.${consumer}`,
  `$JS.ACK.${stream}.${consumer}.>`,
];

export const removeConsumer = (stream: string, consumer: string): string =>
  `${api}.CONSUMER.DELETE.${stream}.${consumer}`;

export const listConsumers = (...streams: string[]): string[] =>
  streams.map((stream) => `${api}.CONSUMER.LIST.${stream}`);

/** Removes one message by its sequence, or all messages of a subject. */
export const remove = (...streams: string[]): string[] =>
  streams.flatMap((stream) => [`${api}.STREAM.MSG.DELETE.${stream}`, `${api}.STREAM.PURGE.${stream}`]);

export const purge = (...streams: string[]): string[] =>
  streams.map((stream) => `${api}.STREAM.PURGE.${stream}`);

export const look = (...streams: string[]): string[] =>
  streams.map((stream) => `${api}.STREAM.INFO.${stream}`);

export const kv = (bucket: string): string => `KV_{_}${bucket}`;
export const entry = (bucket: string, keys: string): string => `$KV.{_}${bucket}.${keys}`;

/** Requests of every user: its account, its permissions and the server's clock. */
export const self = [`${api}.INFO`, "$SYS.REQ.USER.INFO"];
export const streamNames = `${api}.STREAM.NAMES`;
