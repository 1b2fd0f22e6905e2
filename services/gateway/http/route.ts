/**
 * A route is data: its address, the required role, the schemas of input and output, and the action. The
 * server and the OpenAPI file are both generated from it, so they cannot disagree.
 */
import type { z } from "zod";
import type { Identity, Role } from "../security/index.ts";

export interface Caller extends Identity {
  /** Address of the caller. */
  from: string;
  /** True if the caller's browser speaks https. */
  https: boolean;
}

interface RouteInput<P, Q, B> {
  params: P;
  query: Q;
  body: B;
  caller: Caller;
  /** Aborts when the caller closes the connection. */
  signal: AbortSignal;
}

/** A reply other than a JSON body: a file, a cookie. */
export class Reply {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: unknown, headers: Readonly<Record<string, string>>) {
    this.body = body;
    this.headers = headers;
  }
}

export interface RouteSpec<P = unknown, Q = unknown, B = unknown, A = unknown> {
  /** The operation's name in the OpenAPI file. */
  id: string;
  method: "get" | "post";
  /** The path in hono's form: `/api/instances/:id`. */
  path: string;
  tag: string;
  summary: string;
  role: Role | "public";
  params?: z.ZodType<P>;
  query?: z.ZodType<Q>;
  body?: z.ZodType<B>;
  answer: z.ZodType<A>;
  status?: 200 | 202;
  /** Answered from memory: works while NATS is away. */
  offline?: boolean;
  /** The audit entry of the route. Every route that changes anything has one. */
  audit?: (input: { params: P; query: Q; body: B }) => { target: string; with?: Record<string, string> };
  /**
   * The instance or session whose values the answer shows: each reading of users' values is in the audit
   * (GATEWAY-8).
   */
  reads?: (input: { params: P; query: Q; body: B }) => string;
  /** The same for a list that shows values of many. */
  lists?: string;
  /** The answer is a user's value and nothing else: callers that may not see values are refused. */
  valueOnly?: boolean;
  /** Users' code answers: what it throws has words of its own, which are users' values too. */
  runsCode?: boolean;
  act(input: RouteInput<P, Q, B>): Promise<A | Reply> | A | Reply;
}

/** Checks the action's types against the schemas, then erases them so that all routes fit into one list. */
export function route<P = Record<string, never>, Q = Record<string, never>, B = undefined, A = unknown>(
  spec: RouteSpec<P, Q, B, A>,
): RouteSpec {
  // The schemas check the action's input at run time: the list of routes can erase the types.
  return spec as unknown as RouteSpec;
}

export const changesThings = (spec: RouteSpec): boolean => spec.audit !== undefined;
