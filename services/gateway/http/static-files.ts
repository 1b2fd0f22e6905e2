/**
 * The built dashboard, read once into memory. Any address that is neither a file nor the API gets the app's
 * page.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import type { Handler } from "hono";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

interface File {
  bytes: Uint8Array<ArrayBuffer>;
  gzipped: Uint8Array<ArrayBuffer>;
  type: string;
  etag: string;
  /** The build names the file after its content: it never changes. */
  immutable: boolean;
}

export function serveDashboard(dir: string): Handler {
  const files = readAll(dir);
  return (c) => {
    const path = decodeURIComponentSafe(new URL(c.req.url).pathname).replace(/^\/+/, "");
    const page = files.get("index.html");
    const file = files.get(path) ?? (extname(path) === "" ? page : undefined);
    if (!file) {
      const hint = page ? "" : " The dashboard has not been built: npm run build.";
      return c.text(`Not found.${hint}`, 404);
    }
    c.header("content-type", file.type);
    c.header("etag", file.etag);
    c.header("vary", "accept-encoding");
    c.header("cache-control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
    if (c.req.header("if-none-match") === file.etag) return c.body(null, 304);
    if (/\bgzip\b/.test(c.req.header("accept-encoding") ?? "")) {
      c.header("content-encoding", "gzip");
      return c.body(file.gzipped);
    }
    return c.body(file.bytes);
  };
}

function readAll(dir: string): Map<string, File> {
  const files = new Map<string, File>();
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return files;
  for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    const path = join(dir, name);
    if (!statSync(path).isFile()) continue;
    const bytes = new Uint8Array(readFileSync(path));
    const address = relative(dir, path).split(sep).join("/");
    files.set(address, {
      bytes,
      gzipped: new Uint8Array(gzipSync(bytes)),
      type: types[extname(path)] ?? "application/octet-stream",
      etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
      immutable: address.startsWith("assets/"),
    });
  }
  return files;
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A malformed escape names no file of ours.
  }
}
