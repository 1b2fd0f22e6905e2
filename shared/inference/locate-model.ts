import { existsSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { modelError } from "./model-errors.ts";

interface ModelName {
  /** A hub id (`name` or `owner/name`), or a path: absolute, or beginning with `./`. */
  model: string;
  /** Branch, tag or commit of a model on the hub. */
  revision?: string | undefined;
  /** Folder that holds models by id. When set, no path outside it is accepted. */
  localModelPath?: string | undefined;
  /** Where models fetched from the hub are kept. */
  cacheDir?: string | undefined;
  /** True: a model that is not on this machine may be fetched from the hub. */
  allowRemote?: boolean | undefined;
}

export type ModelLocation = { kind: "folder"; path: string } | { kind: "hub"; id: string; revision: string };

export const modelIdPattern = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?$/;
const revisionPattern = /^[A-Za-z0-9][\w./-]*$/;

/**
 * Decides where a model is read from.
 *
 * MODEL-1 A model's name may come from an orchestration's input, that is from outside: it cannot point out of
 *    the models folder.
 * MODEL-2 Without `allowRemote` the answer is a folder or an error, never an id. transformers.js 4.3 asks the
 *    hub about an id in spite of its own `local_files_only`, so an id must not reach it.
 */
export function locateModel(name: ModelName, exists: (path: string) => boolean = existsSync): ModelLocation {
  const { model, revision = "main", allowRemote = false } = name;
  if (climbs(model)) throw refused(model, "it leads out of its folder");
  if (climbs(revision) || !revisionPattern.test(revision)) {
    throw refused(`${model}@${revision}`, "a revision is a branch, a tag or a commit");
  }
  const hasModel = (path: string): boolean => exists(join(path, "config.json"));
  if (isAbsolute(model) || model.startsWith("./")) return locatePath(model, name.localModelPath, hasModel);
  if (!modelIdPattern.test(model)) {
    throw refused(model, "an id is `name` or `owner/name`, a path begins with `/` or `./`");
  }

  const local = name.localModelPath === undefined ? undefined : resolve(name.localModelPath, model);
  if (local && hasModel(local)) return { kind: "folder", path: local };
  if (allowRemote) return { kind: "hub", id: model, revision };
  // The layout of the library's cache: a revision other than main is a folder of its own.
  const cached = name.cacheDir && join(resolve(name.cacheDir), model, revision === "main" ? "" : revision);
  if (cached && hasModel(cached)) return { kind: "folder", path: cached };
  const looked = [local ?? "no local folder (localModelPath is not set)", cached ?? "no cache"];
  throw modelError(
    "model_not_found",
    `No model ${model}: looked at ${looked.join(" and ")}; the hub was not asked because allowRemote is false`,
    { details: { looked, allowRemote } },
  );
}

function locatePath(
  model: string,
  base: string | undefined,
  hasModel: (path: string) => boolean,
): ModelLocation {
  const path = base && !isAbsolute(model) ? resolve(base, model) : resolve(model);
  if (base && !isInside(resolve(base), path)) throw refused(model, `it is outside localModelPath (${base})`);
  if (hasModel(path)) return { kind: "folder", path };
  const message = `No model at ${path}: it has no config.json. A path is never fetched from the hub, whatever allowRemote says`;
  throw modelError("model_not_found", message, { details: { looked: [path] } });
}

const climbs = (name: string): boolean => name.includes("\0") || name.split(/[/\\]/).includes("..");

function isInside(base: string, path: string): boolean {
  const way = relative(base, path);
  return way !== "" && !way.startsWith("..") && !isAbsolute(way);
}

const refused = (name: string, why: string) =>
  modelError("model_name_refused", `The model name ${JSON.stringify(name)} is refused: ${why}`);
