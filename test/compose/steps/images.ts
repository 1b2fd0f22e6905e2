/** Every variant of the image, as compose.yaml builds it, and what is in it. */
import { z } from "zod";
import { check, ensure } from "../check.ts";
import { docker } from "../engine/index.ts";
import { Project } from "../project.ts";
import { type Ground, imageName } from "../stage.ts";

export async function buildImages(ground: Ground): Promise<void> {
  const { engine, images, journal, folder } = ground;
  const arguments_ = { NODE_IMAGE: images.node, BASE_IMAGE: images.base };
  const network = engine.buildNetwork === undefined ? {} : { network: engine.buildNetwork };
  // The CUDA image is some gigabytes, and its provider nothing without a device: the way there is tried on the small base.
  const gpu = { ...arguments_, CUDA_IMAGE: images.base, CUDA_PROVIDER: "skip" };
  const project = await Project.create(engine, {
    name: "holdfast-test-build",
    folder,
    override: {
      services: {
        orchestrator: { build: { ...network, args: arguments_ } },
        "worker-gpu": { build: { ...network, args: gpu } },
      },
    },
    env: {},
    profiles: ["gpu"],
  });
  const base = await sizeOf(ground, images.base);
  journal.note("base image", megabytes(base));
  const variants = [
    { service: "orchestrator", variant: "holdfast", tag: "holdfast-test:holdfast" },
    { service: "orchestrator", variant: "inference", tag: imageName },
    { service: "worker-gpu", variant: "gpu without CUDA", tag: "holdfast-test:gpu" },
  ];
  for (const { service, variant, tag } of variants) {
    project.set({ DEPLOY_VARIANT: variant, DEPLOY_IMAGE: tag, DEPLOY_GPU_IMAGE: tag });
    await project.compose("build", service);
    const size = await sizeOf(ground, tag);
    journal.note(`image, variant ${variant}`, `${megabytes(size)}, ${megabytes(size - base)} of it ours`);
    await checkContents(ground, tag);
  }
}

async function sizeOf({ engine }: Ground, image: string): Promise<number> {
  return Number(await docker(engine, "image", "inspect", "--format", "{{.Size}}", image));
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

const Contents = z.object({ uid: z.int(), packages: z.array(z.string()), strangers: z.array(z.string()) });

/** Runs inside, on Node alone: other tools are not promised there. */
const look = `
const fs = require("fs");
const files = fs.readdirSync("/holdfast", { recursive: true }).map(String);
const packages = fs.readdirSync("/holdfast/node_modules");
const foreign = /(darwin|win32|musl|android|freebsd)[^/]*\\/.*\\.(node|so|dll|dylib)|\\.d\\.ts$|\\.map$|\\.test\\.|\\.tsx?$/;
const strangers = files.filter((file) => foreign.test(file)).slice(0, 5);
console.log(JSON.stringify({ uid: process.getuid(), packages, strangers }));`;

const developmentOnly = [
  "typescript",
  "@typescript",
  "vitest",
  "vite",
  "rolldown",
  "@biomejs",
  "playwright-core",
];

async function checkContents({ engine }: Ground, image: string): Promise<void> {
  const inside = ["run", "--rm", "--network", "none", "--entrypoint", "node", image, "-e", look];
  const contents = Contents.parse(JSON.parse(await docker(engine, ...inside)));
  check(`${image} runs as`, contents.uid, 10_001);
  check(`files of development or of other platforms in ${image}`, contents.strangers, []);
  const development = contents.packages.filter((name) => developmentOnly.includes(name));
  check(`packages of development in ${image}`, development, []);
  const npm = docker(engine, "run", "--rm", "--network", "none", "--entrypoint", "npm", image, "--version");
  ensure(
    `${image} has no npm`,
    await npm.then(
      () => false,
      () => true,
    ),
  );
}
