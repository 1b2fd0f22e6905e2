/**
 * Reports changes of source files below a folder. Folders of packages, builds and data are left out. Each
 * watched folder has one watcher, and new folders are added when they appear.
 */
import { existsSync, type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { dirname, extname, join, relative } from "node:path";

const sourceExtensions = new Set([".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".json", ".py"]);
const leftOut = new Set(["node_modules", "dist", "build", "coverage", "test-results"]);
/**
 * Editors write a file in several steps, and people save several files: changes within this time are reported
 * as one.
 */
const settleMs = 150;

interface WatchedFiles {
  stop(): void;
}

export function watchFiles(root: string, onChange: (files: string[]) => void): WatchedFiles {
  const watchers = new Map<string, FSWatcher>();
  const changed = new Set<string>();
  let settling: NodeJS.Timeout | undefined;

  const settle = () => {
    const files = [...changed].sort();
    changed.clear();
    onChange(files);
  };
  const follow = (folder: string): void => {
    if (watchers.has(folder)) return;
    const watcher = watch(folder, (_event, name) => {
      if (name === null || isLeftOut(name)) return;
      const path = join(folder, name);
      if (isFolder(path)) return follow(path);
      if (!sourceExtensions.has(extname(name))) return;
      changed.add(relative(root, path));
      clearTimeout(settling);
      settling = setTimeout(settle, settleMs);
    });
    watchers.set(folder, watcher);
    watcher.on("error", () => {
      // The folder is gone; a new one of the same name gets a new watcher.
      watcher.close();
      watchers.delete(folder);
    });
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory() && !isLeftOut(entry.name)) follow(join(folder, entry.name));
  };
  follow(root);
  return {
    stop() {
      clearTimeout(settling);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

const isLeftOut = (name: string): boolean => name.startsWith(".") || leftOut.has(name);
const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** The root of the package an application belongs to; the application's own folder if it belongs to none. */
export function packageRoot(app: string): string {
  const own = isFolder(app) ? app : dirname(app);
  for (let folder = own; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (dirname(folder) === folder) return own;
  }
}
