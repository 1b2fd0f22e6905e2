/** `npm run images`: writes the digest of every image beside its tag. `-- --check`: only says which have changed. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { digestOf, imagesIn, parseImage, pinned } from "./images.ts";

const files = ["Dockerfile", "compose.yaml", "services/deployment.ts", ".env.example"].map((name) =>
  fileURLToPath(new URL(`../../${name}`, import.meta.url)),
);
const texts = new Map(files.map((file) => [file, readFileSync(file, "utf8")]));
const images = new Set([...texts.values()].flatMap(imagesIn));
const digests = new Map<string, string>();
let changed = 0;
for (const image of images) {
  const found = parseImage(image);
  const [plain = image] = image.split("@");
  const digest = await digestOf(found, process.env.HOLDFAST_IMAGE_REGISTRY);
  digests.set(plain, digest);
  if (digest === found.digest) continue;
  changed++;
  console.log(`${plain}: ${found.digest ?? "no digest"} -> ${digest}`);
}
if (process.argv.includes("--check")) {
  process.exitCode = changed > 0 ? 1 : 0;
} else {
  for (const [file, text] of texts) writeFileSync(file, pinned(text, digests));
  console.log(`${changed} of ${images.size} images changed; then: npm run docs:config`);
}
