/**
 * The first process of the floor: what an orchestrator does on the wire, and nothing else. All waiting
 * messages of an instance become one append with an expected sequence; then the tasks are published; then the
 * messages are acknowledged.
 */
import type { Msg } from "@nats-io/nats-core";
import { machineMs } from "../clock.ts";
import { FloorLink } from "./link.ts";
import { bodyBytes, type FloorEnd, type FloorStart, floorSettings, padding } from "./protocol.ts";
import { createOwnStream, floorNames } from "./topology.ts";

interface Running {
  readonly id: string;
  readonly subject: string;
  readonly start: FloorStart;
  lastSeq: number;
  scheduled: number;
  completed: number;
  waiting: Msg[];
  busy: boolean;
  signalAt: number;
  readonly stamps: number[];
}

const { url, layout } = floorSettings();
const link = await FloorLink.connect(url, "floor-orchestrator");
const instances = new Map<string, Running>();
const ack = new TextEncoder().encode("+ACK");

link.consume(floorNames.inbox, "orchestrator", 512, (message) => {
  const [, id = "", verb] = message.subject.split(".");
  const running = verb === "start" ? begin(id, message) : instances.get(id);
  if (!running) throw new Error(`${message.subject}: no such instance`);
  if (verb === "signal") running.signalAt = machineMs();
  if (verb === "done") running.stamps.push(Number(message.string()));
  running.waiting.push(message);
  if (!running.busy) void work(running);
});
process.send?.("ready");

function begin(id: string, message: Msg): Running {
  const running: Running = {
    id,
    subject: floorNames.history(id, layout),
    start: message.json<FloorStart>(),
    lastSeq: 0,
    scheduled: 0,
    completed: 0,
    waiting: [],
    busy: false,
    signalAt: 0,
    stamps: [],
  };
  instances.set(id, running);
  return running;
}

async function work(running: Running): Promise<void> {
  running.busy = true;
  if (layout === "per-instance" && running.lastSeq === 0) await createOwnStream(link, running.id);
  while (running.waiting.length > 0) {
    const batch = running.waiting;
    running.waiting = [];
    await (running.start.direct ? directSteps(running, batch) : turn(running, batch));
  }
  running.busy = false;
}

/** Steps with one stored write each, as the lane has them. */
async function directSteps(running: Running, batch: readonly Msg[]): Promise<void> {
  const { start, stamps } = running;
  while (stamps.length < start.steps) {
    const report = await link.request(floorNames.direct(start.worker), padding(bodyBytes.task));
    stamps.push(Number(report.string()));
    await append(running, 2);
  }
  acknowledge(batch);
  end(running);
}

async function turn(running: Running, batch: readonly Msg[]): Promise<void> {
  const { id, start } = running;
  if (running.scheduled > 0) running.completed += batch.length;
  const from = running.scheduled;
  const waits = start.waits && running.signalAt === 0;
  running.scheduled = waits ? 0 : Math.min(start.steps, running.completed + start.width);
  const events = batch.length + running.scheduled - from;
  await append(running, events);
  const publishes: Promise<number>[] = [];
  for (let step = from; step < running.scheduled; step++) {
    const headers = { "Nats-Msg-Id": `task-${id}-${step}` };
    publishes.push(link.store(floorNames.task(start.worker, id), padding(bodyBytes.task), headers));
  }
  await Promise.all(publishes);
  acknowledge(batch);
  if (waits) link.nc.publish(floorNames.waiting(id), "");
  if (running.completed >= start.steps) end(running);
}

async function append(running: Running, events: number): Promise<void> {
  running.lastSeq = await link.store(running.subject, padding(events * bodyBytes.event), {
    "Floor-Commit": `${running.id}-${running.lastSeq}`,
    "Nats-Expected-Last-Subject-Sequence": String(running.lastSeq),
  });
}

function acknowledge(batch: readonly Msg[]): void {
  for (const message of batch) link.nc.publish(message.reply ?? "", ack);
}

function end({ id, stamps, signalAt }: Running): void {
  instances.delete(id);
  const ended: FloorEnd = { stamps, signalAt };
  link.nc.publish(floorNames.notice(id), JSON.stringify(ended));
}
