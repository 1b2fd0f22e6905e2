import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { packageDir } from "../../../services/version.ts";

/** The images named in the Dockerfile and in compose.yaml. */
export interface Pinned {
  node: string;
  base: string;
  nats: string;
}

export async function pinnedImages(): Promise<Pinned> {
  const dockerfile = await readFile(join(packageDir(), "Dockerfile"), "utf8");
  const compose = await readFile(join(packageDir(), "compose.yaml"), "utf8");
  return {
    node: first(dockerfile, /^ARG NODE_IMAGE=(\S+)$/m),
    base: first(dockerfile, /^ARG BASE_IMAGE=(\S+)$/m),
    nats: first(compose, /DEPLOY_NATS_IMAGE:-([^}]+)\}/),
  };
}

function first(text: string, pattern: RegExp): string {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`nothing matches ${pattern}`);
  return found;
}
