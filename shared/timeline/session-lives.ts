/** The sessions of one execution, folded from its events. */
import type { EventOf, HistoryEvent, SessionState } from "../../schemas/index.ts";
import { failureText, phaseWord, shortEpoch } from "../wording/index.ts";
import type { Mark, SessionLife, Standing } from "./timeline.ts";

type SessionEvent = Extract<HistoryEvent, { kind: `session.${string}` }>;

interface Holder {
  workerId: string;
  epoch: number;
  attachment: number;
}

const holderText = ({ workerId, epoch }: Holder): string => `${workerId}, epoch ${shortEpoch(epoch)}`;

/** Shown as long as the session has this holder, so that people see later that it is not the first. */
const afterLoss = ({ losses }: SessionLife): string =>
  losses === undefined
    ? ""
    : `, claimed anew after ${losses.count === 1 ? "a loss" : `${losses.count} losses`}: ${losses.last}`;

export class SessionLives {
  readonly #lives: SessionLife[];
  /** The latest life of each session: a member of a pool may be lent several times. */
  readonly #latest = new Map<string, SessionLife>();

  constructor(lives: SessionLife[]) {
    this.#lives = lives;
  }

  /** A session that an earlier execution carried over, or that the parent granted. */
  brought({ sessionId, type, phase }: SessionState, at: number): void {
    const life = this.#open(0, sessionId, type, at);
    const held = phase.kind === "active" || phase.kind === "claimed" || phase.kind === "rebuilding";
    if ("on" in phase && phase.on) hold(life, "held", at, phase.on);
    if (held) setStanding(life, "open", `${phase.kind} on ${holderText(phase.on)}`);
    else setStanding(life, "waiting", phaseWord(phase.kind));
  }

  lent({ id, of, member: { sessionId, type, phase } }: EventOf<"pool.lent">, at: number): void {
    const life = this.#open(id, sessionId, type, at);
    life.lentFor = of;
    if ("on" in phase && phase.on) hold(life, "held", at, phase.on);
    setStanding(life, "open", "on" in phase && phase.on ? `${sessionId} on ${phase.on.workerId}` : sessionId);
  }

  givenBack({ id, of }: EventOf<"pool.left">, at: number): void {
    const life = [...this.#latest.values()].find(({ lentFor }) => lentFor !== undefined && lentFor === of);
    if (!life) return;
    closeSegment(life, at);
    life.to ??= at;
    life.marks.push({ at, kind: "closed", text: "given back", id });
  }

  /** The execution has ended, and no later event of its sessions is in its history. */
  end(at: number): void {
    for (const life of this.#latest.values()) {
      closeSegment(life, at);
      if (life.to === undefined) setStanding(life, "done", "");
      life.to ??= at;
    }
  }

  apply(event: SessionEvent, at: number): void {
    const { id, sessionId } = event;
    const life =
      this.#latest.get(sessionId) ??
      this.#open(id, sessionId, event.kind === "session.opened" ? event.type : "session", at);
    const mark = (kind: Mark["kind"], text: string): void => {
      life.marks.push({ at, kind, text, id });
    };
    switch (event.kind) {
      case "session.opened":
        return setStanding(life, "waiting", "opened");
      case "session.requested": {
        const { attachment } = event;
        closeSegment(life, at);
        life.segments.push({ phase: "waiting", from: at, to: undefined, attachment });
        const again = attachment > 1 ? ` (attachment ${attachment})` : "";
        return setStanding(
          life,
          "waiting",
          `${life.losses ? `${life.losses.last}; ` : ""}waits for a worker${again}`,
        );
      }
      case "session.claimed":
        hold(life, "starting", at, event.on);
        return setStanding(life, "waiting", `init on ${holderText(event.on)}${afterLoss(life)}`);
      case "session.activated": {
        const { on, warm, restored } = event;
        const how = `${warm ? ", still warm" : ""}${restored ? ", from a checkpoint" : ""}`;
        if (on.attachment > 1) mark("reclaimed", `reclaimed by ${on.workerId}${how}`);
        hold(life, "held", at, on);
        return setStanding(life, "open", `active on ${holderText(on)}${afterLoss(life)}`);
      }
      case "session.init_failed":
        closeSegment(life, at);
        mark("init failed", `init failed: ${event.error.message}`);
        return setStanding(life, "waiting", `init failed: ${failureText(event.error)}`);
      case "session.failed":
        mark("failed", `failed: ${event.error.message}`);
        return over(life, at, "failed", failureText(event.error));
      case "session.lost": {
        const { on, reason, detail } = event;
        closeSegment(life, at);
        const holder = on ? ` by ${on.workerId}` : "";
        const last = `lost${holder} (${reason}${detail === undefined ? "" : `: ${detail}`})`;
        const epoch = on ? ` (epoch ${shortEpoch(on.epoch)})` : "";
        mark("lost", `lost${holder}${epoch}: ${reason}${detail ? `, ${detail}` : ""}`);
        life.losses = { count: (life.losses?.count ?? 0) + 1, last };
        return setStanding(life, "failed", last);
      }
      case "session.parked":
        closeSegment(life, at);
        life.segments.push({ phase: "parked", from: at, to: undefined });
        return setStanding(life, "waiting", "idle, parked by its holder until the next call");
      case "session.checkpointed": {
        const { bytes, calls } = event.checkpoint;
        return mark("checkpoint", `checkpoint of ${bytes} bytes after ${calls} calls`);
      }
      case "session.metadata_set":
      case "session.metadata_reported":
        return mark("metadata", `metadata ${JSON.stringify(event.change)}`);
      case "session.blob_changed": {
        const { name, stored } = event;
        return mark("blob", `${name} ${stored ? `stored, ${stored.bytes} bytes` : "deleted"}`);
      }
      case "session.closed":
        mark("closed", "closed");
        return over(life, at, "done", "closed");
      case "session.lent": {
        const text = `lent to ${event.lending.to.instanceId}`;
        mark("lent", text);
        return setStanding(life, "open", text);
      }
      case "session.returned":
        mark("returned", "given back");
        return setStanding(life, "open", "given back");
    }
  }

  #open(id: number, sessionId: string, type: string, at: number): SessionLife {
    const life: SessionLife = {
      ...{ id, sessionId, type, from: at, to: undefined, segments: [], marks: [] },
      ...{ standing: "waiting", note: "" },
    };
    this.#latest.set(sessionId, life);
    this.#lives.push(life);
    return life;
  }
}

function setStanding(life: SessionLife, standing: Standing, note: string): void {
  life.standing = standing;
  life.note = note;
}

function over(life: SessionLife, at: number, standing: Standing, note: string): void {
  closeSegment(life, at);
  if (life.to === undefined) setStanding(life, standing, note);
  life.to ??= at;
}

function hold(
  life: SessionLife,
  phase: "starting" | "held",
  at: number,
  { workerId, epoch, attachment }: Holder,
): void {
  closeSegment(life, at);
  life.segments.push({ phase, from: at, to: undefined, workerId, epoch, attachment });
}

function closeSegment({ segments }: SessionLife, at: number): void {
  const last = segments.at(-1);
  if (last && last.to === undefined) last.to = at;
}
