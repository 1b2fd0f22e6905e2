/** The gateway's API, typed by the gateway's own schemas. */
import { signal } from "@preact/signals";
import type { MessageNames } from "../../../../schemas/index.ts";
import type { DeadLetterView, ScheduleView } from "../../../../shared/sdk/internal.ts";
import type { ProblemBody } from "../../http/problem.ts";
import type { Overview } from "../../live/overview.ts";
import type { InstanceRow, SessionRow, WorkerRow } from "../../live/rows.ts";
import type { StreamsView } from "../../live/stream-watch.ts";
import type { DatedEvent, HistoryPage } from "../../routes/history.ts";
import type { InstanceView, StreamPage } from "../../routes/instances.ts";

export type {
  DatedEvent,
  DeadLetterView,
  HistoryPage,
  InstanceRow,
  InstanceView,
  MessageNames,
  Overview,
  ScheduleView,
  SessionRow,
  StreamPage,
  StreamsView,
  WorkerRow,
};

export interface Whoami {
  name: string;
  role: "viewer" | "operator" | "admin";
  payloads: boolean;
  readOnly: boolean;
  tokensRequired: boolean;
  version: string;
  prefix: string;
}

export interface Startable {
  name: string;
  input?: unknown;
  served: boolean;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;

  constructor(status: number, error: ProblemBody["error"]) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
  }
}

/** The caller. Undefined until known; null if a token is needed. */
export const me = signal<Whoami | null | undefined>(undefined);

export const mayAct = (role: "operator" | "admin" = "operator"): boolean => {
  const who = me.value;
  if (!who || who.readOnly) return false;
  return who.role === "admin" || who.role === role;
};

export function get<T>(address: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(address, signal ? { signal } : {});
}

export function post<T = unknown>(address: string, body: unknown = {}): Promise<T> {
  return ask<T>(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function ask<T>(address: string, init: RequestInit): Promise<T> {
  const response = await fetch(address, init).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "gateway_away", message: "The gateway cannot be reached" });
  });
  const body = (await response.json().catch(() => undefined)) as (T & Partial<ProblemBody>) | undefined;
  if (response.ok && body !== undefined) return body;
  if (response.status === 401 && address !== "/api/login") me.value = null;
  const error = body?.error ?? { code: "unexpected", message: `The gateway answered ${response.status}` };
  throw new ApiError(response.status, error);
}

/** Why the gateway could not be asked for the caller's identity; the page asks again by itself. */
export const unreached = signal<ApiError | undefined>(undefined);
const askAgainMs = 1_000;

export async function identify(): Promise<void> {
  const inAddress = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (inAddress !== undefined) {
    // Removed from the address first, so that the token is in no history and no screenshot.
    history.replaceState(null, "", location.pathname + location.search);
    await reaching(() => post("/api/login", { token: decodeURIComponent(inAddress) })).catch(() => undefined);
  }
  me.value = await reaching(() => get<Whoami>("/api/whoami")).catch(() => null);
}

/** Repeats a request until it is answered: an unreachable gateway, or one without NATS, is not a refusal. */
async function reaching<T>(question: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const answer = await question();
      unreached.value = undefined;
      return answer;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 0 && error.status !== 503)) {
        unreached.value = undefined;
        throw error;
      }
      unreached.value = error;
      await new Promise((resolve) => setTimeout(resolve, askAgainMs));
    }
  }
}
