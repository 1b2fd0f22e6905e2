/**
 * API tokens that administrators issue: each with a role, a scope and an end, revoked at once on every
 * gateway. They lie in the settings bucket as digests: services that may write there (orchestrators,
 * watchers, gateways) could add one, but no process can read one back.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import {
  Bucket,
  type Bus,
  decode,
  encode,
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { roles, type TokenScope } from "./identity.ts";
import { digestOf, type KnownToken } from "./tokens.ts";

const Stored = z.object({
  v: z.literal(1),
  id: z.string(),
  name: z.string(),
  role: z.enum(roles),
  payloads: z.boolean(),
  operations: z.array(z.string()).optional(),
  orchestrations: z.array(z.string()).optional(),
  /** SHA-256 of the token, in hex. */
  digest: z.string().length(64),
  createdAt: z.number(),
  createdBy: z.string(),
  expiresAt: z.number(),
  revokedAt: z.number().optional(),
  revokedBy: z.string().optional(),
});
type Stored = z.infer<typeof Stored>;

/** A token as shown in lists. */
export const ApiToken = Stored.omit({ v: true, digest: true });
export type ApiToken = z.infer<typeof ApiToken>;

interface NewToken extends TokenScope, Pick<Stored, "name" | "role" | "payloads"> {
  expiresAt: number;
}

const keyPrefix = "api-token.";
const mostTokens = 1_000;

export class IssuedTokens {
  readonly #bucket: Bucket;
  readonly #stored = new Map<string, Stored>();
  #known: readonly KnownToken[] = [];
  #tail: Stoppable | undefined;

  constructor(bus: Bus, names: Subjects) {
    this.#bucket = new Bucket(bus, names.bucket("settings"));
  }

  /** Resolves when the tokens that exist now are known. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#bucket
        .watch(`${keyPrefix}*`, {
          onEntry: (event) => {
            const id = event.key.slice(keyPrefix.length);
            const stored = event.kind === "put" ? decode(Stored, event.value) : undefined;
            // An entry that cannot be read admits no caller.
            if (stored?.kind === "ok") this.#set(stored.value);
            else this.#forget(id);
          },
          onCaughtUp: resolve,
        })
        .then((tail) => {
          this.#tail = tail;
        }, reject);
    });
  }

  async stop(): Promise<void> {
    await this.#tail?.stop();
  }

  /** The tokens that are not revoked. The caller compares `expiresAt` with the time. */
  known(): readonly KnownToken[] {
    return this.#known;
  }

  list(): ApiToken[] {
    const all = [...this.#stored.values()].sort((a, b) => b.createdAt - a.createdAt);
    return all.map(({ v: _, digest: _d, ...shown }) => shown);
  }

  /** The token is in this answer and nowhere else. */
  async issue(wanted: NewToken, by: string, now: number): Promise<{ token: string; shown: ApiToken }> {
    await this.#clear(now);
    if (this.#stored.size >= mostTokens)
      throw new Fault("application", {
        code: "too_many_tokens",
        message: `there are ${mostTokens} API tokens already`,
        hint: "Revoke some; expired tokens are removed by themselves.",
      });
    const id = randomBytes(6).toString("hex");
    const token = `hf_${id}_${randomBytes(24).toString("base64url")}`;
    const digest = digestOf(token).toString("hex");
    const { name, role, payloads, expiresAt } = wanted;
    const stored: Stored = {
      ...{ v: 1, id, name, role, payloads, ...scopeOf(wanted) },
      ...{ digest, createdAt: now, createdBy: by, expiresAt },
    };
    await this.#write(stored);
    const { v: _, digest: _d, ...shown } = stored;
    return { token, shown };
  }

  /** Returns false if there is no such token. */
  async revoke(id: string, by: string, now: number): Promise<boolean> {
    const stored = this.#stored.get(id);
    if (!stored) return false;
    if (stored.revokedAt === undefined) await this.#write({ ...stored, revokedAt: now, revokedBy: by });
    return true;
  }

  async #write(stored: Stored): Promise<void> {
    const outcome = await this.#bucket.put(`${keyPrefix}${stored.id}`, encode(stored));
    if (outcome.kind !== "written")
      throw new Fault("transient", {
        code: "outcome_unknown",
        message: "NATS did not answer in time: the change of the token may or may not have been stored",
        hint: "Look at the list of tokens, and try again.",
      });
    this.#set(stored);
  }

  /** Removes expired tokens. */
  async #clear(now: number): Promise<void> {
    for (const { id, expiresAt } of this.#stored.values()) {
      if (expiresAt > now) continue;
      await this.#bucket.delete(`${keyPrefix}${id}`);
      this.#forget(id);
    }
  }

  #set(stored: Stored): void {
    this.#stored.set(stored.id, stored);
    this.#refresh();
  }

  #forget(id: string): void {
    this.#stored.delete(id);
    this.#refresh();
  }

  #refresh(): void {
    this.#known = [...this.#stored.values()]
      .filter(({ revokedAt }) => revokedAt === undefined)
      .map(({ id, name, role, payloads, expiresAt, digest, ...scope }) => ({
        ...{ id, name, role, payloads, expiresAt },
        digest: Buffer.from(digest, "hex"),
        scope: scopeOf(scope),
      }));
  }
}

const scopeOf = ({ operations, orchestrations }: TokenScope) => ({
  ...(operations && { operations: [...operations] }),
  ...(orchestrations && { orchestrations: [...orchestrations] }),
});
