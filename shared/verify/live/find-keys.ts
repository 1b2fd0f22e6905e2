/**
 * Finds which of the wanted keys are in the queues, the inbox and the leases: one pass over each, keeping
 * only the wanted keys.
 */
import { ActivityTask, endsInstance, SessionClaim, SessionWork } from "../../../schemas/index.ts";
import { decode, leaseKeys } from "../../bus/index.ts";
import { type Installation, isGone } from "../installation.ts";
import { keys } from "./waiting-for.ts";

interface OldMail {
  instanceId: string;
  subject: string;
  seq: number;
  at: number;
}

export interface Found {
  keys: ReadonlySet<string>;
  /** The first messages that have waited in the inbox since before `mailBefore`. */
  oldMail: readonly OldMail[];
}

const keptMail = 1000;

export async function foundAmong(
  installation: Installation,
  wanted: ReadonlySet<string>,
  mailBefore: number,
): Promise<Found> {
  const found = new Set<string>();
  const oldMail: OldMail[] = [];
  const note = (key: string) => void (wanted.has(key) && found.add(key));
  // In the direction in which work flows: work that moves on meanwhile is found further on.
  await inClaims(installation, note);
  await inActivities(installation, note);
  await inSessions(installation, note);
  await inLeases(installation, note);
  await inInbox(installation, (mail, timer) => {
    if (timer) return note(keys.timer(mail.instanceId, timer.execution, timer.of));
    const anchor = keys.anchor(mail.instanceId, mail.seq);
    // An anchor for work on the lane is not a waiting message.
    if (wanted.has(anchor)) return note(anchor);
    note(keys.mail(mail.instanceId));
    if (mail.at < mailBefore && oldMail.length < keptMail) oldMail.push(mail);
  });
  await inTimers(installation, note);
  await inAside(installation, note);
  for (const key of wanted) {
    const [kind, instanceId] = key.split(" ");
    if (kind === "running" && instanceId && (await isRunning(installation, instanceId))) found.add(key);
  }
  return { keys: found, oldMail };
}

type Note = (key: string) => void;

const noteTask = ({ instanceId, execution, of, attempt }: ActivityTask, note: Note): void =>
  note(keys.task(instanceId, execution, of, attempt));

async function inActivities(installation: Installation, note: Note): Promise<void> {
  for await (const { body } of installation.messages(installation.names.activitiesStream)) {
    const task = decode(ActivityTask, body);
    if (task.kind === "ok") noteTask(task.value, note);
  }
}

async function inSessions(installation: Installation, note: Note): Promise<void> {
  for await (const { body } of installation.messages(installation.names.sessionsStream)) {
    const work = decode(SessionWork, body);
    if (work.kind === "ok" && work.value.kind === "call") noteTask(work.value.task, note);
  }
}

async function inClaims(installation: Installation, note: Note): Promise<void> {
  for await (const { body } of installation.messages(installation.names.claimsStream)) {
    const claim = decode(SessionClaim, body);
    if (claim.kind === "ok") note(keys.claim(claim.value.sessionId, claim.value.attachment));
  }
}

async function inLeases(installation: Installation, note: Note): Promise<void> {
  for await (const { key, message } of installation.entries("leases", leaseKeys.allSessions)) {
    const address = leaseKeys.parseSession(key);
    if (!address) continue;
    note(keys.lease(address.sessionId, address.attachment));
    if (!isGone(message)) note(keys.held(address.sessionId, address.attachment));
  }
}

async function inInbox(
  installation: Installation,
  each: (mail: OldMail, timer: { execution: number; of: number } | undefined) => void,
): Promise<void> {
  const { names } = installation;
  for await (const { subject, seq, at } of installation.messages(names.inboxStream)) {
    const timer = names.parseTimer(subject);
    const instanceId = timer ? timerOwner(subject) : names.inboxInstance(subject);
    if (instanceId !== undefined) each({ instanceId, subject, seq, at }, timer);
  }
}

/** `alarms.<instanceId>.<execution>.<of>`, after any prefix; versions before 0.2 put it into the inbox. */
const timerOwner = (subject: string): string | undefined => subject.split(".").at(-3);

async function inTimers(installation: Installation, note: Note): Promise<void> {
  const { timersStream, allTimers, parseTimer } = installation.names;
  for await (const { subject } of installation.messages(timersStream, allTimers)) {
    const timer = parseTimer(subject);
    const instanceId = timerOwner(subject);
    if (timer && instanceId !== undefined) note(keys.timer(instanceId, timer.execution, timer.of));
  }
}

/** Messages set aside return before anything else (ASIDE-2). */
async function inAside(installation: Installation, note: Note): Promise<void> {
  for await (const { subject } of installation.messages(installation.names.asideStream))
    note(keys.mail(subject.split(".").at(-1) ?? ""));
}

async function isRunning(installation: Installation, instanceId: string): Promise<boolean> {
  return (await endOf(installation, instanceId)) === "running";
}

/** Reads only the last commit. */
export async function endOf(
  installation: Installation,
  instanceId: string,
): Promise<"absent" | "running" | { endedAt: number }> {
  const found = await installation.histories.find(instanceId);
  if (!found) return "absent";
  for await (const { page } of installation.histories.read(instanceId, found, 500, found.lastSeq)) {
    const commit = page.at(-1)?.commit;
    const over = commit?.events.some(endsInstance);
    return commit && over ? { endedAt: commit.at } : "running";
  }
  return "running";
}
