/**
 * What `npm start` and `npm run demo` show: real mails through one session, cold against warm, and a worker killed half
 * way. Throws where something is not as it should be, so that the once-through ends with an exit code.
 */
import type { DemoStage, HistoryEntry } from "holdfast";
import { z } from "zod";
import { heldOutCount, loadMails } from "../mails/mails.ts";
import { classifyCold, classifyDocuments } from "./app.ts";
import { eventsOf, follow, untilHistory } from "./follow.ts";
import { type Summary, summaryTable } from "./summary.ts";

const Input = z
  .strictObject({
    /** All of them were kept out of the model's training. */
    mails: z.int().min(40).max(heldOutCount).default(1_000),
    /** Mails to compare cold with warm by. */
    compared: z.int().min(1).max(100).default(20),
  })
  .prefault({});

/** The model alone reaches 0.966. */
const leastAccuracy = 0.93;

export async function runDemo(stage: DemoStage): Promise<Summary> {
  const { mails: count, compared } = Input.parse(stage.input);
  const mails = loadMails().slice(0, count);
  const texts = mails.map((mail) => mail.text);
  const { coldMs, warmMs } = await compare(stage, texts.slice(0, compared));

  stage.say(`\n${count} mails through one session; its worker is killed half way`);
  const { client } = stage;
  const handle = await client.start(classifyDocuments, { documents: texts });
  const { instanceId } = handle;
  let recovery: Promise<Recovery> | undefined;
  await follow(client, instanceId, (done, of) => {
    stage.progress(done, of, "mails");
    if (done >= of / 2) recovery ??= killHolder(stage, instanceId, done);
  });
  const { labels, ms } = await handle.result();
  const { outageMs } = await (recovery ?? missed("it was over before its worker could be killed"));

  const history = await client.history(instanceId);
  const right = mails.filter((mail, i) => mail.label === labels[i]?.label).length;
  const summary: Summary = {
    instanceId,
    documents: labels.length,
    accuracy: right / count,
    modelLoads: eventsOf(history, "session.activated").length,
    lossesSurvived: eventsOf(history, "session.lost").length,
    callsPerSecond: (1000 * count) / (ms - outageMs),
    outageMs,
    coldMs,
    warmMs,
    coldToWarm: coldMs / warmMs,
  };
  check(summary, count, history);
  stage.say(`\n${summaryTable(summary)}`);
  for (const line of whereToLook(stage, instanceId)) stage.say(line);
  return summary;
}

/** The same mails, one after the other, with the model loaded for each and with a model that is there. */
async function compare({ client, say }: DemoStage, documents: string[]) {
  say(`\nthe same ${documents.length} mails twice, one after the other`);
  const cold = await (await client.start(classifyCold, { documents })).result();
  const coldMs = cold.ms / documents.length;
  say(`  cold, the model loaded for every mail:  ${coldMs.toFixed(1)} ms each`);
  const warm = await (await client.start(classifyDocuments, { documents, atOnce: 1 })).result();
  const warmMs = warm.ms / documents.length;
  say(`  warm, the model held by a session:      ${warmMs.toFixed(1)} ms each`);
  say(`  ${(coldMs / warmMs).toFixed(1)} times faster`);
  if (cold.labels.some(({ label }, i) => label !== warm.labels[i]?.label)) {
    throw new Error("the model answered differently cold and warm");
  }
  return { coldMs, warmMs };
}

interface Recovery {
  outageMs: number;
}

async function killHolder(stage: DemoStage, instanceId: string, done: number): Promise<Recovery> {
  const { client, say } = stage;
  const holder = eventsOf(await client.history(instanceId), "session.activated").at(-1)?.on;
  if (holder === undefined) throw new Error("nobody holds the session");
  const killedAt = await stage.killWorker(holder.workerId);
  say(`  SIGKILL to ${holder.workerId} at ${done} mails: the model and all it knew are gone`);
  const lost = await untilHistory(client, instanceId, (history) => eventsOf(history, "session.lost").at(-1));
  const noticedMs = lost.at - killedAt;
  say(`  session_lost (${lost.reason}): noticed after ${seconds(noticedMs)}`);
  const again = await untilHistory(client, instanceId, (history) =>
    eventsOf(history, "session.activated").find(({ on }) => on.epoch > holder.epoch),
  );
  say(
    `  reclaimed by ${again.on.workerId} with a higher epoch, model loaded again in ${seconds(again.initMs)}`,
  );
  say("  it goes on: open calls are repeated, nothing that was answered is asked again");
  return { outageMs: again.at - killedAt };
}

function check(
  { documents, accuracy, modelLoads, lossesSurvived }: Summary,
  count: number,
  history: HistoryEntry[],
) {
  const answers = eventsOf(history, "activity.completed").map(({ of }) => of);
  const wrong = [
    documents !== count && `${documents} documents instead of ${count}`,
    accuracy < leastAccuracy && `accuracy ${accuracy} is below ${leastAccuracy}`,
    lossesSurvived !== 1 && `${lossesSurvived} losses instead of one`,
    modelLoads !== 2 && `${modelLoads} model loads instead of two`,
    answers.length !== count && `${answers.length} answers were recorded for ${count} calls`,
    new Set(answers).size !== answers.length && "a call was answered twice",
  ].filter((complaint) => complaint !== false);
  if (wrong.length > 0) throw new Error(`the demo went wrong: ${wrong.join("; ")}`);
}

function whereToLook({ dashboard, staysUp }: DemoStage, instanceId: string): string[] {
  const commands = [
    `  npx holdfast history ${instanceId}`,
    `  npx holdfast sessions list --instance ${instanceId}`,
    '  npx holdfast start hello --input \'{"name":"Ada"}\' --wait',
    "  npx holdfast doctor",
  ];
  if (!staysUp) return ["\nIt is all kept. Serve it again with `npm start`, then look:", ...commands];
  const page = dashboard === undefined ? [] : [`  ${dashboard}/orchestrations/${instanceId}`];
  return ["\nLook at it in another terminal:", ...page, ...commands];
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function missed(why: string): never {
  throw new Error(`the demo went wrong: ${why}`);
}
