/**
 * The variables that compose.yaml itself reads. No service acts on them; compose hands each service the whole
 * `.env`, so each service can report a misspelt name in it. A test compares the names with compose.yaml.
 */
import { setting } from "./setting.ts";

const { text, wholeNumber } = setting;
const replicas = wholeNumber(0, 10_000).default(2);
const port = (number: number) => wholeNumber(1, 65_535).default(number);

export const deploymentSettings = {
  DEPLOY_APP_DIR: text.default("./examples").describe("Folder mounted at `/app`: your application."),
  DEPLOY_ORCHESTRATOR_APP: text.optional().describe("`HOLDFAST_APP` of orchestrators alone."),
  DEPLOY_WORKER_APP: text.optional().describe("`HOLDFAST_APP` of workers alone."),
  DEPLOY_VARIANT: setting
    .oneOf("holdfast", "inference")
    .default("inference")
    .describe("What the image brings: no models, or transformers.js on the CPU."),
  DEPLOY_IMAGE: text.default("holdfast:local").describe("Image of the services; built where there is none."),
  DEPLOY_ORCHESTRATORS: replicas.describe("How many orchestrators."),
  DEPLOY_WATCHERS: replicas.describe("How many watchers."),
  DEPLOY_WORKERS: replicas.describe("How many workers."),
  DEPLOY_WORKER_STOP_GRACE: text
    .default("45s")
    .describe("How long the container of a worker may take to stop; longer than `WORKER_DRAIN_TIMEOUT`."),
  DEPLOY_GPU_IMAGE: text.default("holdfast-gpu:local").describe("Image of GPU workers."),
  DEPLOY_GPU_DEVICE: text.default("0").describe("Its device, as `nvidia-smi -L` counts or names it."),
  DEPLOY_GPU_TAGS: text.default("gpu").describe("`WORKER_TAGS` of GPU workers."),
  DEPLOY_GPU_RESOURCES: text.default("gpu=1").describe("`WORKER_RESOURCES` of GPU workers."),
  DEPLOY_NATS_IMAGE: text.default("nats:2.15.0-alpine3.22").describe("Image of NATS, 2.14 or newer."),
  DEPLOY_SECURITY: text
    .optional()
    .describe("More options of the `holdfast security init` that makes the keys, at the first start."),
  DEPLOY_WORKER_KEYS: text
    .default("keys-worker")
    .describe("Volume or folder with the key of the workers started here, `user.nk`."),
  DEPLOY_BIND: text.default("127.0.0.1").describe("Address of this machine that ports are opened on."),
  DEPLOY_NATS_PORT: port(4222).describe("Port of NATS on this machine."),
  DEPLOY_NATS_PORT_2: port(4223).describe("Of the second server of a cluster."),
  DEPLOY_NATS_PORT_3: port(4224).describe("Of the third."),
  DEPLOY_GATEWAY_PORT: port(4440).describe("Port of the gateway on this machine."),
};
