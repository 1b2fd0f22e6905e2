/** An application outside the repository: mounted, and built on top in three lines. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { check } from "../check.ts";
import { docker } from "../engine/index.ts";
import { imageName, newId, type Stage } from "../stage.ts";

export async function mountApplication(stage: Stage): Promise<void> {
  const { project, appDir, journal } = stage;
  project.set({ DEPLOY_APP_DIR: appDir, HOLDFAST_APP: "/app/app.ts" });
  await project.up();
  await walks(stage);
  journal.note("mounted", `\`DEPLOY_APP_DIR\`, a folder without package.json outside the repository`);
}

const lines = [`FROM ${imageName}`, "COPY . /srv/app", "ENV HOLDFAST_APP=/srv/app/app.ts"];

/** Built on top, and split: orchestrators load the orchestrations, workers the work. */
export async function buildApplication(stage: Stage): Promise<void> {
  const { engine, project, appDir, journal } = stage;
  await writeFile(join(appDir, "Dockerfile"), `${lines.join("\n")}\n`);
  await docker(engine, "build", "-q", "-t", "holdfast-test:own", appDir);
  project.set({
    DEPLOY_IMAGE: "holdfast-test:own",
    HOLDFAST_APP: "/srv/app/app.ts",
    DEPLOY_ORCHESTRATOR_APP: "/srv/app/orchestrations.ts",
    DEPLOY_WORKER_APP: "/srv/app/work.ts",
  });
  await project.up();
  await walks(stage);
  journal.note("built on top", `three lines; orchestrators load \`orchestrations.ts\`, workers \`work.ts\``);
}

async function walks({ driver }: Stage): Promise<void> {
  const id = newId("walk");
  await driver.start(id, "walk", { steps: 3 });
  check("walk", (await driver.result(id)).output, 3);
}
