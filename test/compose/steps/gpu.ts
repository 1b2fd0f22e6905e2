/** What can be said of the profile `gpu` without a GPU: what compose makes of it, and that nothing falls back unasked. */
import { join } from "node:path";
import { z } from "zod";
import { packageDir } from "../../../services/version.ts";
import { check, ensure } from "../check.ts";
import { attempt } from "../command.ts";
import type { Stage } from "../stage.ts";

const Service = z.looseObject({
  environment: z.record(z.string(), z.string().nullable()),
  volumes: z.array(z.looseObject({ source: z.string().optional(), target: z.string() })),
  deploy: z.looseObject({
    resources: z.looseObject({
      reservations: z.looseObject({ devices: z.array(z.looseObject({})) }),
    }),
  }),
});

export async function checkGpuProfile(stage: Stage): Promise<void> {
  const { project, journal, engine } = stage;
  const config = JSON.parse(await project.compose("--profile", "gpu", "config", "--format", "json"));
  const worker = Service.parse(config.services["worker-gpu"]);
  check("the device", worker.deploy.resources.reservations.devices, [
    { driver: "nvidia", device_ids: ["0"], capabilities: ["gpu"] },
  ]);
  check("its tags", worker.environment.WORKER_TAGS, "gpu");
  ensure(
    "the models are kept",
    worker.volumes.some(({ source, target }) => source === "models" && target === "/models"),
  );

  const load = (options: string) =>
    attempt(
      "docker",
      [
        ...["run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp"],
        ...["-v", `${join(packageDir(), "examples/models")}:/app/models:ro`, "--entrypoint", "node"],
        ...["holdfast-test:gpu", "--input-type=module", "-e", loading(options)],
      ],
      { env: engine.env },
    );
  const strict = await load('device: "cuda"');
  ensure(
    "a named device that is not there fails",
    strict.stdout.includes("model_device_unavailable"),
    strict,
  );
  const allowed = await load('device: "cuda", fallback: true');
  ensure("with leave it falls back, and says why", /^cpu because cuda: /m.test(allowed.stdout), allowed);
  journal.note('`device: "cuda"` without a GPU', "fails with `model_device_unavailable`");
  journal.note("and with `fallback: true`", "runs on the CPU and says why");
}

const loading = (options: string): string => `
import { loadPipeline } from "/holdfast/dist/shared/inference/index.js";
try {
  const { facts } = await loadPipeline({ task: "text-classification", model: "spam-use", localModelPath: "/app/models", ${options} });
  console.log(facts.device + " because " + facts.why);
} catch (error) {
  console.log(error.code);
}
process.exit(0);`;
