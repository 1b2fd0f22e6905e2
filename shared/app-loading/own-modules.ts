/**
 * Hooks into Node's resolution of an application's imports. An application in any folder finds the packages
 * that Holdfast brings along (this package, zod, models) unless it has its own. In a folder without
 * package.json Node assumes CommonJS; TypeScript there is still treated as modules.
 *
 * There are two hooks, because a hook on the loader's own thread (all that Node 20 has) is asked after those
 * on the main thread. Where Node has main-thread hooks the TypeScript compiler uses them, and would have
 * decided already.
 */
import * as nodeModule from "node:module";
import { correctUsing, loweredUsing } from "./correct-using.ts";

export interface OwnModules {
  /** Import name → URL. */
  own: Readonly<Record<string, string>>;
  /** A second place to look for packages: resolved as if imported from here. */
  home: string;
}

interface Resolved {
  url: string;
  format?: string | null | undefined;
}
interface Context {
  parentURL?: string | undefined;
}
type Next = (specifier: string, context: Context) => Resolved;
interface Loaded {
  source?: string | ArrayBuffer | Uint8Array | null | undefined;
}
type RegisterHooks = (hooks: {
  resolve(specifier: string, context: Context, next: Next): Resolved;
  load(url: string, context: object, next: (url: string, context: object) => Loaded): Loaded;
}) => unknown;

/** True in Node 20: registering hooks starts a thread, and waits for it. */
export const hooksNeedThread = !("registerHooks" in nodeModule);

export function registerOwnModules(modules: OwnModules): void {
  const registerHooks = "registerHooks" in nodeModule ? nodeModule.registerHooks : undefined;
  if (typeof registerHooks === "function") {
    const resolve = (specifier: string, context: Context, next: Next) =>
      asModule(specifier, locate(modules, specifier, context, next));
    (registerHooks as RegisterHooks)({
      resolve,
      load: (url, context, next) => corrected(url, next(url, context), correctUsing),
    });
  } else {
    const source = `data:text/javascript,${encodeURIComponent(threadHook)}`;
    nodeModule.register(source, { data: modules });
  }
}

function locate({ own, home }: OwnModules, specifier: string, context: Context, next: Next): Resolved {
  const wanted = own[specifier] ?? specifier;
  try {
    return next(wanted, context);
  } catch (error) {
    if (!isMissing(error) || !/^[a-z@]/i.test(wanted) || wanted.includes(":")) throw error;
    try {
      return next(wanted, { ...context, parentURL: home });
    } catch {
      throw error; // Report the failure of the user's own import, not of the second try.
    }
  }
}

/** The two error codes for a missing module: for imports, and for files that Node takes for CommonJS. */
const isMissing = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND");

/**
 * A query that the application did not write comes from the compiler, for files that it takes for CommonJS.
 */
function asModule(specifier: string, found: Resolved): Resolved {
  const typescript =
    /^file:.*\.(?:m?ts|tsx)(?:$|\?|%3F)/.test(found.url) && !found.url.includes("/node_modules/");
  if (!typescript) return found;
  const url = specifier.includes("?") ? found.url : found.url.replace(/(?:\?|%3F).*$/, "");
  return { ...found, url, format: "module" };
}

/**
 * The text of this function also runs on the loader's thread, which has no imports: `correct` is therefore a
 * parameter.
 */
function corrected(url: string, loaded: Loaded, correct: (code: string) => string): Loaded {
  const { source } = loaded;
  if (!url.startsWith("file:") || url.includes("/node_modules/") || !source) return loaded;
  const code = typeof source === "string" ? source : new TextDecoder().decode(source);
  const better = correct(code);
  return better === code ? loaded : { ...loaded, source: better };
}

/** The same for the loader's thread, which cannot run TypeScript, hence as text. */
const threadHook = `
const __name = (named) => named; // esbuild calls this in the functions below
let own, home;
export const initialize = (data) => { ({ own, home } = data); };
export async function resolve(specifier, context, next) {
  return asModule(specifier, await locate(own[specifier] ?? specifier, context, next));
}
export async function load(url, context, next) {
  return corrected(url, await next(url, context), correctUsing);
}
async function locate(specifier, context, next) {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND" || !/^[a-z@]/i.test(specifier) || specifier.includes(":")) throw error;
    return await next(specifier, { ...context, parentURL: home }).catch(() => { throw error; });
  }
}
${asModule}
${corrected}
${correctUsing}
const loweredUsing = ${loweredUsing};
`;
