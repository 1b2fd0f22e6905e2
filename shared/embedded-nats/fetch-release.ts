/** Fetches the official release of nats-server: a tarball whose checksum is pinned here. */
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./run-command.ts";
import { placeInCache } from "./server-cache.ts";
import type { OnProgress, Way } from "./server-origin.ts";

export interface Release {
  readonly version: string;
  /** Address of the release's folder; its files have the names the project gives them. */
  readonly url: string;
  /** sha256 of `nats-server-v<version>-<platform>.tar.gz`, by platform. */
  readonly sha256: Readonly<Record<string, string>>;
}

/**
 * The linux sums are those of the server project's own container recipe (nats-io/nats-docker, 2.15.x/alpine3.22 at
 * 629985321b0b). That recipe has no darwin; those two were taken from three unrelated public projects that copied
 * them from the release's SHA256SUMS and agree with the recipe on linux. None of them could be downloaded and
 * hashed where this was written; a wrong sum can only refuse the download, never accept a changed one.
 */
export const pinnedRelease: Release = {
  version: "2.15.0",
  url: "https://github.com/nats-io/nats-server/releases/download/v2.15.0",
  sha256: {
    "linux-amd64": "5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92",
    "linux-arm64": "cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112",
    "linux-arm7": "ec5f4689d017e07cfa18442e10da051c0f3f9dd2e7f4dc7cdb55a11f1303c952",
    "linux-ppc64le": "a402bf73f91f674735cc85aa0e7d06d5dfa3044b98cda6ea9937cfee4e05a266",
    "linux-s390x": "ac50bf4adc8fa6db575ed9293417b6fbec746e71cc9d360aea5cd447e4207bfc",
    "darwin-amd64": "5bd8b59ca5bf93fab3da2c5843cf564cd6e2e291e22ae3b861746e7ebe259b95",
    "darwin-arm64": "e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8",
  },
};

/** A closed network must not delay the next way by more than this. */
const answerWithinMs = 5_000;
const downloadWithinMs = 120_000;

interface ReleaseOptions {
  cacheDir: string;
  release: Release;
  onProgress: OnProgress;
}

export async function fetchRelease({ cacheDir, release, onProgress }: ReleaseOptions): Promise<Way> {
  const platform = releasePlatform();
  const sha256 = release.sha256[platform];
  if (sha256 === undefined) {
    return { kind: "failed", reasons: [`no checksum is pinned for nats-server on ${platform}`] };
  }
  const folder = `nats-server-v${release.version}-${platform}`;
  const url = `${release.url}/${folder}.tar.gz`;
  onProgress(`fetching nats-server ${release.version} (official release)`);
  const work = await mkdtemp(join(tmpdir(), "holdfast-nats-release-"));
  try {
    const bytes = await download(url);
    const actual = createHash("sha256").update(bytes).digest("hex");
    if (actual !== sha256) {
      return { kind: "failed", reasons: [`${url} has sha256 ${actual}, expected ${sha256}: refused`] };
    }
    await writeFile(join(work, "release.tar.gz"), bytes);
    const member = `${folder}/nats-server`;
    const untar = await runCommand("tar", ["-xzf", "release.tar.gz", member], {
      cwd: work,
      timeoutMs: 60_000,
    });
    if (untar.kind === "failed") return { kind: "failed", reasons: [untar.reason] };
    return await placeInCache(cacheDir, join(work, folder, "nats-server"), "release");
  } catch (error) {
    return { kind: "failed", reasons: [`${url}: ${rootMessage(error)}`] };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function download(url: string): Promise<Uint8Array> {
  const silence = new AbortController();
  const timer = setTimeout(
    () => silence.abort(new Error(`no answer within ${answerWithinMs} ms`)),
    answerWithinMs,
  );
  const signal = AbortSignal.any([silence.signal, AbortSignal.timeout(downloadWithinMs)]);
  try {
    const response = await fetch(url, { signal });
    clearTimeout(timer);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } finally {
    clearTimeout(timer);
  }
}

/** `fetch` says only "fetch failed"; the reason is in the error's cause. */
function rootMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? rootMessage(error.cause) : error.message;
}

export function releasePlatform(): string {
  const arches: Partial<Record<NodeJS.Architecture, string>> = {
    x64: "amd64",
    arm: "arm7",
    ia32: "386",
    ppc64: "ppc64le",
  };
  return `${process.platform}-${arches[process.arch] ?? process.arch}`;
}
