/** Saved contexts: `$XDG_CONFIG_HOME/holdfast/contexts.json`, readable by its owner alone. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { Name } from "../../../schemas/index.ts";
import { Fault, HoldfastError } from "../../errors/index.ts";

export const Context = z.strictObject({
  /** May contain a password: never print it unmasked. */
  natsUrl: z.string().min(1),
  /** Path of a NATS credentials file. */
  creds: z.string().min(1).optional(),
  prefix: z.string().optional(),
});
export type Context = z.infer<typeof Context>;

const ContextsFile = z.strictObject({
  v: z.literal(1),
  current: z.string().optional(),
  contexts: z.record(z.string(), Context),
});
type ContextsFile = z.infer<typeof ContextsFile>;

export class Contexts {
  readonly path: string;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
    this.path = join(folder, "holdfast", "contexts.json");
  }

  read(): ContextsFile {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch {
      return { v: 1, contexts: {} }; // No context was saved yet.
    }
    const parsed = ContextsFile.safeParse(json(text));
    if (parsed.success) return parsed.data;
    throw new Fault("config", {
      code: "contexts_unreadable",
      message: `${this.path} is not a file of contexts`,
      hint: "Repair or remove it.",
    });
  }

  get(name: string): Context {
    const context = this.read().contexts[name];
    if (context) return context;
    throw unknown(name);
  }

  current(): { name: string; context: Context } | undefined {
    const { current, contexts } = this.read();
    const context = current === undefined ? undefined : contexts[current];
    return current === undefined || !context ? undefined : { name: current, context };
  }

  add(name: string, context: Context, use: boolean): void {
    if (!Name.safeParse(name).success) {
      throw new Fault("config", {
        code: "invalid_option",
        message: `context name ${JSON.stringify(name)}: letters, digits, _ and - only`,
      });
    }
    const file = this.read();
    file.contexts[name] = context;
    if (use) file.current = name;
    this.#write(file);
  }

  use(name: string): void {
    const file = this.read();
    if (!Object.hasOwn(file.contexts, name)) throw unknown(name);
    this.#write({ ...file, current: name });
  }

  remove(name: string): void {
    const { current, contexts } = this.read();
    if (!Object.hasOwn(contexts, name)) throw unknown(name);
    const { [name]: _, ...rest } = contexts;
    this.#write({ v: 1, contexts: rest, ...(current === undefined || current === name ? {} : { current }) });
  }

  /** Replaces the file atomically. */
  #write(file: ContextsFile): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const draft = `${this.path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, this.path);
  }
}

const unknown = (name: string): HoldfastError =>
  new HoldfastError({ code: "context_not_found", message: `there is no context ${name}` });

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The schema refuses it.
  }
}
