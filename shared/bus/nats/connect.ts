/** Turns options into a checked connection, or into one clear error message. */
import { readFileSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import type {
  Authenticator,
  ConnectionOptions,
  NatsConnection,
  ServerInfo,
  TlsOptions,
} from "@nats-io/nats-core";
import {
  connect,
  credsAuthenticator,
  nkeyAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import { Fault, isFault, messageOf } from "../../errors/index.ts";
import {
  type Announce,
  addressRule,
  isAddress,
  keepingAlive,
  maskUrl,
  sleep,
  systemClock,
} from "../../runtime/index.ts";
import { isAuthError } from "./nats-errors.ts";

export interface ConnectOptions {
  url: string | string[];
  name?: string;
  /** Prefix of this client's inboxes, if its permissions name one. */
  inboxPrefix?: string;
  user?: string;
  pass?: string;
  token?: string;
  /** A file with JWT and seed. */
  credsFile?: string;
  /** A file with the password, read again at each connection. */
  passFile?: string;
  nkeySeed?: string;
  /** A file with the seed of an nkey, read again at each connection. */
  nkeyFile?: string;
  /** With `ca` or `caFile` there is no connection without TLS. */
  tls?: TlsOptions;
  announce: Announce;
  connectTimeoutMs?: number;
  /** Tries until a server is reachable, instead of failing when none is. */
  waitForServer?: boolean;
  signal?: AbortSignal;
}

const neededVersion = "2.14.0";
const retryMs = 500;

export async function openConnection(
  options: ConnectOptions,
): Promise<{ nc: NatsConnection; info: ServerInfo }> {
  checkAddress(options);
  const settings = await settingsOf(options);
  const nc = await dial(settings, options);
  const info = nc.info;
  try {
    if (!info) throw unreachable(options, "the server sent no INFO");
    checkServer(info, options);
    return { nc, info };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/** Without an address the client would connect to any server that listens on its default port. */
function checkAddress({ url }: { url?: string | string[] | undefined }): void {
  const all = url === undefined ? [] : [url].flat();
  const wrong = all.find((one) => !isAddress(one));
  if (all.length > 0 && wrong === undefined) return;
  throw new Fault("config", {
    code: "invalid_address",
    message: `url ${wrong === undefined ? "is missing: it" : JSON.stringify(maskUrl(wrong))} ${addressRule}`,
    hint: "Several addresses are given as a list.",
  });
}

async function settingsOf(options: ConnectOptions): Promise<ConnectionOptions> {
  const { user, pass, token, nkeySeed, tls, name, inboxPrefix } = options;
  for (const file of [
    options.credsFile,
    options.passFile,
    options.nkeyFile,
    tls?.caFile,
    tls?.certFile,
    tls?.keyFile,
  ])
    if (file !== undefined) await checkReadable(file);
  const authenticator = authenticatorOf(options);
  const named = [user, token, nkeySeed, authenticator].some((one) => one !== undefined);
  return {
    servers: options.url,
    timeout: options.connectTimeoutMs ?? 5_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 150,
    reconnectJitter: 150,
    reconnectJitterTLS: 300,
    // A half-open connection is noticed within 15 seconds.
    pingInterval: 5_000,
    maxPingOut: 2,
    noAsyncTraces: true,
    // Otherwise two refusals in a row, as while a server reloads its accounts, would end the connection for
    // good.
    ignoreAuthErrorAbort: true,
    ...(named ? {} : loginOf(options)),
    ...(name === undefined ? {} : { name }),
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    ...(user === undefined ? {} : { user }),
    ...(pass === undefined ? {} : { pass }),
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls }),
    ...(authenticator === undefined || nkeySeed !== undefined ? {} : { authenticator }),
    ...(nkeySeed === undefined
      ? {}
      : { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkeySeed)) }),
  };
}

/** The client leaves out what stands before the host of an address: `user:password@`, or a token. */
function loginOf({ url }: ConnectOptions): Pick<ConnectionOptions, "user" | "pass" | "token"> {
  const found = [url].flat().flatMap((one) => /^\s*(?:[A-Za-z]+:\/\/)?(\S+)@/.exec(one)?.[1] ?? []);
  const [user = "", ...pass] = (found[0] ?? "").split(":").map(decoded);
  if (user === "") return {};
  return pass.length > 0 ? { user, pass: pass.join(":") } : { token: user };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a password with a lone %
  }
}

/** Files are read at each connection: a new key takes effect without a restart. */
function authenticatorOf({ credsFile, nkeyFile, passFile, user }: ConnectOptions): Authenticator | undefined {
  if (credsFile !== undefined) return credsAuthenticator(() => readFileSync(credsFile));
  if (nkeyFile !== undefined)
    return nkeyAuthenticator(() => new TextEncoder().encode(readFileSync(nkeyFile, "utf8").trim()));
  if (passFile !== undefined)
    return usernamePasswordAuthenticator(user ?? "", () => readFileSync(passFile, "utf8").trim());
  return undefined;
}

async function checkReadable(path: string): Promise<void> {
  try {
    await access(path, constants.R_OK);
  } catch (cause) {
    throw new Fault("config", {
      code: "creds_unreadable",
      message: `cannot read ${path}, the file with this process's NATS credentials`,
      cause,
    });
  }
}

const dial = (settings: ConnectionOptions, options: ConnectOptions): Promise<NatsConnection> =>
  untilReachable(options, async () => {
    try {
      return await connect(settings);
    } catch (cause) {
      if (isAuthError(cause)) throw refused(options, cause);
      throw unreachable(options, messageOf(cause), cause);
    }
  });

/**
 * With `waitForServer`, repeats `act` until a server answers and its cluster has a leader. Announces the first
 * failure.
 */
export async function untilReachable<T>(options: ConnectOptions, act: () => Promise<T>): Promise<T> {
  let announced = false;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      const mayPass = isFault(error) && (error.kind === "transient" || error.code === "nats_unreachable");
      if (!mayPass || !options.waitForServer || options.signal?.aborted) throw error;
      if (!announced)
        options.announce({ kind: "fault", where: "connect", code: error.code, message: error.message });
      announced = true;
      if ((await keepingAlive(sleep(systemClock, retryMs, options.signal))) === "aborted") throw error;
    }
  }
}

function checkServer(info: ServerInfo, options: ConnectOptions): void {
  if (!isAtLeast(info.version, neededVersion)) {
    throw new Fault("config", {
      code: "nats_too_old",
      message: `the NATS server at ${maskedUrls(options)} is version ${info.version}, Holdfast needs ${neededVersion} or newer`,
      hint: "Upgrade nats-server.",
    });
  }
  if (info.jetstream !== true) throw jetStreamDisabled(options);
}

export const jetStreamDisabled = (options: ConnectOptions): Fault =>
  new Fault("config", {
    code: "jetstream_disabled",
    message: `JetStream is not enabled on the NATS server at ${maskedUrls(options)}`,
    hint: "Start nats-server with -js, or enable JetStream for this account.",
  });

/** Compares the three numbers; a pre-release counts as its release. */
function isAtLeast(version: string, needed: string): boolean {
  const numbers = (text: string) => (text.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  const have = numbers(version);
  for (const [index, want] of numbers(needed).entries()) {
    const got = have[index] ?? 0;
    if (got !== want) return got > want;
  }
  return true;
}

const refused = (options: ConnectOptions, cause: unknown): Fault =>
  new Fault("config", {
    code: "nats_unauthorized",
    message: `the NATS server at ${maskedUrls(options)} refuses these credentials`,
    hint: "Check user and password, token, credentials file or nkey seed.",
    cause,
  });

const unreachable = (options: ConnectOptions, why: string, cause?: unknown): Fault =>
  new Fault("config", {
    code: "nats_unreachable",
    message: `no NATS server answers at ${maskedUrls(options)}: ${isUnknownHost(cause) ? "there is no host of that name" : why}`,
    hint: isUnknownHost(cause)
      ? "Check the host name in NATS_URL, and that this machine can resolve it."
      : "Start nats-server, or set NATS_URL.",
    cause,
  });

const isUnknownHost = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && (cause.code === "ENOTFOUND" || cause.code === "EAI_AGAIN");

/** The addresses without their passwords, for messages. */
export function maskedUrls(options: Pick<ConnectOptions, "url">): string {
  return [options.url].flat().map(maskUrl).join(", ");
}
