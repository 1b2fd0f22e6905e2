/** Digests of images, asked of a registry on this machine that behaves like a public one. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { packageDir } from "../../../services/version.ts";
import { digestOf, imagesIn, parseImage, pinned } from "../../supply-chain/images.ts";

const digest = `sha256:${"a1".repeat(32)}`;

it("finds every image that the Dockerfile and compose.yaml start from", () => {
  const found = ["Dockerfile", "compose.yaml"].flatMap((name) =>
    imagesIn(readFileSync(`${packageDir()}/${name}`, "utf8")).map((image) => parseImage(image).repository),
  );
  expect(found).toEqual(["library/node", "library/debian", "nvidia/cuda", "library/nats"]);
});

it("pins every image in every file that names it, and changes nothing else", () => {
  const files = ["Dockerfile", "compose.yaml", "services/deployment.ts", ".env.example"];
  const texts = files.map((name) => readFileSync(`${packageDir()}/${name}`, "utf8"));
  const images = new Set(texts.flatMap(imagesIn).map((image) => image.split("@")[0] ?? ""));
  const digests = new Map([...images].map((image) => [image, digest]));
  const after = texts.map((text) => pinned(text, digests));
  for (const [at, text] of after.entries()) {
    expect(
      imagesIn(text).filter((image) => !image.endsWith(`@${digest}`)),
      files[at],
    ).toEqual([]);
    expect(text, `${files[at]} names one`).toContain(digest);
    const without = (one: string) => one.replaceAll(/@sha256:[0-9a-f]{64}/g, "");
    expect(without(text)).toBe(without(texts[at] ?? ""));
  }
});

it("reads the parts of a reference", () => {
  expect(parseImage(`ghcr.io/a/b:1@${digest}`)).toEqual({
    registry: "ghcr.io",
    repository: "a/b",
    tag: "1",
    digest,
  });
  expect(parseImage("localhost:5000/a:1")).toMatchObject({ registry: "localhost:5000", repository: "a" });
});

it("asks the registry with the token it wants, and writes the digest beside the tag", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { url = "", method, headers } = request;
    asked.push(`${method} ${url}`);
    const { port } = server.address() as AddressInfo;
    if (url.startsWith("/token")) return response.end(JSON.stringify({ token: "readers" }));
    if (headers.authorization !== "Bearer readers") {
      const challenge = `Bearer realm="http://127.0.0.1:${port}/token",service="here",scope="repository:library/nats:pull"`;
      return response.writeHead(401, { "www-authenticate": challenge }).end();
    }
    const known = url === "/v2/library/nats/manifests/2.15";
    return response.writeHead(known ? 200 : 404, known ? { "docker-content-digest": digest } : {}).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await digestOf(parseImage("nats:2.15"), mirror)).toBe(digest);
    expect(asked[1]).toBe("GET /token?service=here&scope=repository%3Alibrary%2Fnats%3Apull");
    await expect(digestOf(parseImage("nats:none"), mirror)).rejects.toThrow("answered 404");
  } finally {
    server.close();
    server.closeAllConnections();
  }
  const digests = new Map([["nats:2.15", digest]]);
  const once = pinned("a nats:2.15 b nats:2.15.1 c nats:2.15-alpine", digests);
  expect(once).toBe(`a nats:2.15@${digest} b nats:2.15.1 c nats:2.15-alpine`);
  expect(pinned(once, digests), "twice is once").toBe(once);
});
