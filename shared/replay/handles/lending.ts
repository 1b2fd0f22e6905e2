/** What the lender of an exclusive pool does with its members, and nobody else can. */
import type { Lending } from "../../../schemas/index.ts";
import { SessionId } from "../../../schemas/index.ts";
import type { OrchestrationContext } from "../../definitions/index.ts";
import { Context } from "./context.ts";

export function lend(ctx: OrchestrationContext, sessionId: string, lending: Lending): void {
  runnerOf(ctx).issue({ kind: "session.lent", sessionId: SessionId.parse(sessionId), lending });
}

export function takeBack(ctx: OrchestrationContext, sessionId: string): void {
  runnerOf(ctx).issue({ kind: "session.returned", sessionId: SessionId.parse(sessionId) });
}

function runnerOf(ctx: OrchestrationContext): Context["runner"] {
  if (ctx instanceof Context) return ctx.runner;
  throw new Error("only the engine's own contexts lend");
}
