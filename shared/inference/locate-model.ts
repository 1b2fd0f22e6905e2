import { existsSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { modelError } from "./model-errors.ts";

export interface ModelName {
  /** A hub id (`name` or `owner/name`), or a path: absolute, or beginning with `./`. */
  model: string;
  /** Folder that holds models by id. When set, no path outside it is accepted. */
  localModelPath?: string | undefined;
}

export type ModelLocation =
  | { kind: "folder"; path: string }
  /** Not in the local folder: the hub's cache, or the hub itself. `lookedAt` is for the complaint. */
  | { kind: "hub"; id: string; lookedAt: string | undefined };

const idPattern = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?$/;

/**
 * Decides where a model is read from. A model's name may come from an orchestration's input, that is from
 * outside: it must not be able to point out of the models folder.
 */
export function locateModel(
  { model, localModelPath }: ModelName,
  exists: (path: string) => boolean = existsSync,
): ModelLocation {
  if (model.includes("\0") || model.split(/[/\\]/).includes("..")) {
    throw refused(model, "it leads out of its folder (`..`)");
  }
  const base = localModelPath === undefined ? undefined : resolve(localModelPath);

  if (isAbsolute(model) || model.startsWith("./")) {
    const path = base && !isAbsolute(model) ? resolve(base, model) : resolve(model);
    if (base && !isInside(base, path)) throw refused(model, `it is outside localModelPath (${base})`);
    if (!exists(join(path, "config.json"))) {
      throw modelError(
        "model_not_found",
        `No model at ${path}: it has no config.json. A path is never fetched from a hub.`,
        {
          details: { path },
        },
      );
    }
    return { kind: "folder", path };
  }

  if (!idPattern.test(model)) {
    throw refused(model, "an id is `name` or `owner/name`, a path begins with `/` or `./`");
  }
  if (!base) return { kind: "hub", id: model, lookedAt: undefined };
  const path = join(base, model);
  return exists(join(path, "config.json"))
    ? { kind: "folder", path }
    : { kind: "hub", id: model, lookedAt: path };
}

/** Branches, tags and commits; part of a path in the hub's cache, so it is held to the same rule as an id. */
export function checkRevision(revision: string | undefined): void {
  if (revision === undefined) return;
  const valid = /^[A-Za-z0-9][\w./-]*$/.test(revision) && !revision.split("/").includes("..");
  if (!valid) throw refused(revision, "a revision is a branch, a tag or a commit");
}

function isInside(base: string, path: string): boolean {
  const way = relative(base, path);
  return way !== "" && !way.startsWith("..") && !isAbsolute(way);
}

const refused = (name: string, why: string) =>
  modelError("model_name_refused", `The model name ${JSON.stringify(name)} is refused: ${why}`);
