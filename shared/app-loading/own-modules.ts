/**
 * Hooks into Node's resolution of an application's imports. An application mounted from anywhere finds what we bring along
 * (this package, zod, models) unless it has its own. A folder without package.json counts as CommonJS; TypeScript there
 * is written as modules all the same.
 *
 * Twice, because a hook on the loader's own thread (all that Node 20 has) is asked after those on the main thread, and
 * where the latter exist the TypeScript compiler uses them: it would have decided already.
 */
import * as nodeModule from "node:module";
import { loweredUsing, mendUsing } from "./mend-using.ts";

export interface OwnModules {
  /** Import name → address. */
  own: Readonly<Record<string, string>>;
  /** Where else to look for packages: as if imported from here. */
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

export function registerOwnModules(modules: OwnModules): void {
  const registerHooks = "registerHooks" in nodeModule ? nodeModule.registerHooks : undefined;
  if (typeof registerHooks === "function") {
    const resolve = (specifier: string, context: Context, next: Next) =>
      asModule(specifier, locate(modules, specifier, context, next));
    (registerHooks as RegisterHooks)({
      resolve,
      load: (url, context, next) => mended(url, next(url, context)),
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
      throw error; // the user looked for it in his place, not in ours
    }
  }
}

/** The two ways Node says so, for imports and for what it takes for CommonJS. */
const isMissing = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND");

/** A query the application did not write is the compiler's, for what it takes for CommonJS. */
function asModule(specifier: string, found: Resolved): Resolved {
  const typescript =
    /^file:.*\.(?:m?ts|tsx)(?:$|\?|%3F)/.test(found.url) && !found.url.includes("/node_modules/");
  if (!typescript) return found;
  const url = specifier.includes("?") ? found.url : found.url.replace(/(?:\?|%3F).*$/, "");
  return { ...found, url, format: "module" };
}

function mended(url: string, loaded: Loaded): Loaded {
  const { source } = loaded;
  if (!url.startsWith("file:") || url.includes("/node_modules/") || !source) return loaded;
  const code = typeof source === "string" ? source : new TextDecoder().decode(source);
  const better = mendUsing(code);
  return better === code ? loaded : { ...loaded, source: better };
}

/** The same for the loader's thread, which has no TypeScript, hence text. */
const threadHook = `
const __name = (named) => named; // what the compiler of the sources asks for
let own, home;
export const initialize = (data) => { ({ own, home } = data); };
export async function resolve(specifier, context, next) {
  return asModule(specifier, await locate(own[specifier] ?? specifier, context, next));
}
export async function load(url, context, next) {
  return mended(url, await next(url, context));
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
${mended}
${mendUsing}
const loweredUsing = ${loweredUsing};
`;
