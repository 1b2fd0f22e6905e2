/** The images that the Dockerfile and compose.yaml start from, and their digests at the registry. */
import { z } from "zod";

export interface ImageRef {
  /** Host of the registry; that of Docker where none is named. */
  registry: string;
  repository: string;
  tag: string;
  digest: string | undefined;
}

const defaultRegistry = "registry-1.docker.io";
const reference =
  /(?:[a-z0-9.-]+(?::\d+)?\/)*[a-z0-9._-]+:[A-Za-z0-9_][A-Za-z0-9_.-]*(?:@sha256:[0-9a-f]{64})?/;
/** Where the text of a file names an image that is pulled. */
const places = [
  new RegExp(`^ARG [A-Z]+_IMAGE=(${reference.source})$`, "gm"),
  new RegExp(`DEPLOY_NATS_IMAGE:-(${reference.source})\\}`, "g"),
];

export function imagesIn(text: string): string[] {
  return [...new Set(places.flatMap((place) => [...text.matchAll(place)].map(([, image = ""]) => image)))];
}

export function parseImage(image: string): ImageRef {
  const [named = "", digest] = image.split("@");
  const at = named.lastIndexOf(":");
  const [path, tag] = [named.slice(0, at), named.slice(at + 1)];
  const [first = "", ...rest] = path.split("/");
  const isHost = rest.length > 0 && /[.:]/.test(first);
  const repository = isHost ? rest.join("/") : rest.length > 0 ? path : `library/${path}`;
  return { registry: isHost ? first : defaultRegistry, repository, tag, digest };
}

const manifests = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/** The digest of the tag now, for all platforms. `mirror`: an address to ask instead of the image's own registry. */
export async function digestOf({ registry, repository, tag }: ImageRef, mirror?: string): Promise<string> {
  const address = `${mirror ?? `https://${registry}`}/v2/${repository}/manifests/${tag}`;
  const ask = (token?: string) =>
    fetch(address, {
      method: "HEAD",
      headers: { accept: manifests, ...(token && { authorization: `Bearer ${token}` }) },
    });
  let answer = await ask();
  if (answer.status === 401) answer = await ask(await tokenFor(answer.headers.get("www-authenticate") ?? ""));
  const digest = answer.headers.get("docker-content-digest");
  if (!answer.ok || !/^sha256:[0-9a-f]{64}$/.test(digest ?? ""))
    throw new Error(`${address} answered ${answer.status} without a digest`);
  return digest ?? "";
}

/** Registries let everybody read, but want a token that says so. */
async function tokenFor(challenge: string): Promise<string> {
  const parts = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
  const address = new URL(parts.realm ?? "");
  for (const name of ["service", "scope"]) if (parts[name]) address.searchParams.set(name, parts[name]);
  const body = z
    .object({ token: z.string() })
    .or(z.object({ access_token: z.string() }).transform((found) => ({ token: found.access_token })));
  return body.parse(await (await fetch(address)).json()).token;
}

/** The same text with every image at its digest: `digests` by image without digest. */
export function pinned(text: string, digests: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [image, digest] of digests) {
    const plain = image.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    result = result.replaceAll(
      new RegExp(`${plain}(?:@sha256:[0-9a-f]{64})?(?![\\w.-])`, "g"),
      `${image}@${digest}`,
    );
  }
  return result;
}
