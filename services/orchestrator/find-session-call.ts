/** Looks up a session type and its calls for requests from outside; the error lists the names that exist. */
import { type AnySession, type App, validate } from "../../shared/definitions/index.ts";
import { HoldfastError } from "../../shared/errors/index.ts";

export function findSessionType({ sessions }: Pick<App, "sessions">, type: string): AnySession {
  const definition = sessions.get(type);
  if (definition) return definition;
  throw new HoldfastError({
    code: "unknown_session_type",
    message: `there is no session type ${JSON.stringify(type)}; there are: ${listed(sessions.keys())}`,
  });
}

/** Throws if the type has no such call, or if the input does not fit the call. */
export function checkCall({ name: type, calls }: AnySession, call: string, input: unknown): void {
  const found = Object.hasOwn(calls, call) ? calls[call] : undefined;
  if (found) return void validate(found.input, input, "invalid_input", `input of ${type}.${call}`);
  throw new HoldfastError({
    code: "unknown_call",
    message: `session "${type}" has no call ${JSON.stringify(call)}; there are: ${listed(Object.keys(calls))}`,
  });
}

const listed = (names: Iterable<string>): string => [...names].sort().join(", ") || "none";
