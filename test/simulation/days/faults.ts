/** Everything that may go wrong on a day, besides the network's own unreliability (`BusFaults`). */
import { type BucketName, bucketStream } from "../../../shared/bus/index.ts";
import type { Member, World } from "../../../shared/testing/world/world.ts";
import type { PlannedFault } from "./plan.ts";

export interface Crew {
  world: World;
  orchestrators: Member[];
  workers: Member[];
  watchers: Member[];
  /** Begins another one in the place of one that is dead or stopped, when there is a server. */
  replace(room: Room, gone: Member): void;
  /**
   * Kills or pauses the next member that reaches a fault point drawn by `whom`, as often as drawn by `much`.
   */
  atPoint(planned: PlannedFault, strike: (member: Member, room: Room) => void): void;
  /** A session that is held now, if any. */
  someSession(share: number): Promise<string | undefined>;
  terminateSome(share: number): void;
  /** Runs an action beside the rest of the day and ignores its outcome. */
  beside(work: Promise<unknown>): void;
}

/** Begins, and returns what ends it. */
type Fault = (crew: Crew, planned: PlannedFault) => (() => void) | undefined;

const rooms = ["orchestrators", "workers", "watchers"] as const;
export type Room = (typeof rooms)[number];

const someOf = (members: readonly Member[], share: number): Member[] =>
  members.slice(Math.floor(share * members.length)).slice(0, 1);

/** Strikes some member, if any is alive. */
const onSome =
  (strike: (member: Member, room: Room, crew: Crew, planned: PlannedFault) => () => void): Fault =>
  (crew, planned) => {
    const { whom, much } = planned;
    const room = rooms[much < 0.5 ? 0 : much < 0.85 ? 1 : 2] ?? "orchestrators";
    const [member] = someOf(crew[room], whom);
    return member && strike(member, room, crew, planned);
  };

const crash = onSome((member, room, crew) => {
  member.kill();
  return () => crew.replace(room, member);
});

const paused = (sent: "held" | "let through"): Fault =>
  onSome((member) => {
    member.pause(sent);
    return () => member.resume();
  });

const held = (...directions: ("outgoing" | "incoming")[]): Fault =>
  onSome(({ bus }) => {
    for (const direction of directions) bus.hold(direction);
    return () => {
      for (const direction of directions) bus.letThrough(direction);
    };
  });

/** Neither side gets a notice; a member that finds out connects anew. */
const lost = (...directions: ("outgoing" | "incoming")[]): Fault =>
  onSome(({ bus }) => {
    for (const direction of directions) bus.lose(direction);
    return () => {
      bus.disconnect();
      for (const direction of directions) bus.letThrough(direction);
      bus.reconnect();
    };
  });

/** By somebody who deleted the stream, and a service that made it anew. */
function recreate({ broker }: World, stream: string): void {
  const spec = broker.streams.get(stream)?.spec;
  if (!spec || !broker.isUp) return;
  broker.delete(stream);
  broker.ensure(spec);
}

const recreated =
  (bucket: BucketName): Fault =>
  ({ world }) => {
    recreate(world, bucketStream(world.names.bucket(bucket)));
    return undefined;
  };

const hour = 3_600_000;
/** Up to an hour, ahead or behind; small errors are as likely as large ones. */
const wrongBy = (share: number): number => {
  const sign = share < 0.5 ? -1 : 1;
  return sign * hour * Math.abs(share * 2 - 1) ** 4;
};

const common = {
  crash,
  "crash at a point": (crew, planned) => {
    crew.atPoint(planned, (member, room) => {
      member.kill();
      crew.world.clock.after(1_000, () => crew.replace(room, member));
    });
    return undefined;
  },
  // What it was about to send leaves it when it wakes: late, or too late.
  "pause at a point": (crew, planned) => {
    crew.atPoint(planned, (member) => {
      member.pause("held");
      crew.world.clock.after(planned.lastsMs, () => member.resume());
    });
    return undefined;
  },
  "an orchestrator and a worker die": (crew, { whom, much }) => {
    const [owner] = someOf(crew.orchestrators, whom);
    const [worker] = someOf(crew.workers, (whom * 7) % 1);
    owner?.kill();
    const timer = crew.world.clock.after(much * 400, () => worker?.kill());
    return () => {
      timer.cancel();
      worker?.kill();
      if (owner) crew.replace("orchestrators", owner);
      if (worker) crew.replace("workers", worker);
    };
  },
  "all workers die": (crew) => {
    const gone = [...crew.workers];
    for (const member of gone) member.kill();
    return () => {
      for (const member of gone) crew.replace("workers", member);
    };
  },
  "all orchestrators die": (crew) => {
    const gone = [...crew.orchestrators];
    for (const member of gone) member.kill();
    return () => {
      for (const member of gone) crew.replace("orchestrators", member);
    };
  },
  "pause, sent is held": paused("held"),
  "pause, sent goes through": paused("let through"),
  "outgoing held": held("outgoing"),
  "incoming held": held("incoming"),
  "half open": lost("outgoing", "incoming"),
  "outgoing lost": lost("outgoing"),
  "incoming lost": lost("incoming"),
  "cut off": onSome(({ bus }) => {
    bus.disconnect();
    return () => bus.reconnect();
  }),
  "clock of a member": onSome(({ clock }, _room, _crew, planned) => {
    const by = wrongBy(planned.lastsMs % 1);
    clock.aheadMs += by;
    return () => {
      clock.aheadMs -= by;
    };
  }),
  // Followed by a correction: the servers of a cluster take turns in being asked.
  "clock of the server": ({ world }, { much }) => {
    const by = (much - 0.5) * 1_000;
    world.serverClock.aheadMs += by;
    return () => {
      world.serverClock.aheadMs -= by;
    };
  },
  "no leader": ({ world: { broker } }, { much }) => {
    const names = [...broker.streams.keys()];
    const some = names.filter((_, index) => (index * 7 + Math.floor(much * 100)) % 3 === 0);
    for (const name of some) broker.silent.add(name);
    return () => {
      for (const name of some) broker.silent.delete(name);
    };
  },
  "server away": ({ world: { broker } }) => {
    broker.stop();
    return () => broker.start();
  },
  "store full": ({ world: { broker } }) => {
    broker.storageFull = true;
    return () => {
      broker.storageFull = false;
    };
  },
  "slow disk": ({ world: { broker } }, { much }) => {
    const { fate } = broker;
    const before = fate.faults.latencyMs;
    fate.faults = { ...fate.faults, latencyMs: [10, 20 + much * 400] };
    return () => {
      fate.faults = { ...fate.faults, latencyMs: before };
    };
  },
  "leases re-created": recreated("leases"),
  "workers re-created": recreated("workers"),
  "operator drains a worker": (crew, { whom }) => {
    const [member] = someOf(crew.workers, whom);
    if (!member) return undefined;
    crew.beside(member.stop());
    return () => crew.replace("workers", member);
  },
  "operator redeploys an orchestrator": (crew, { whom }) => {
    const [member] = someOf(crew.orchestrators, whom);
    if (!member) return undefined;
    crew.beside(member.stop());
    return () => crew.replace("orchestrators", member);
  },
  "operator evicts a session": (crew, { whom }) => {
    const { sessions } = crew.world.client;
    crew.beside(
      crew.someSession(whom).then((id) => (id === undefined ? undefined : sessions.evict(id, "for a test"))),
    );
    return undefined;
  },
  "operator terminates an instance": (crew, { whom }) => {
    crew.terminateSome(whom);
    return undefined;
  },
} satisfies Record<string, Fault>;

const rare = {
  "engine's leases re-created": recreated("engine"),
  "services re-created": recreated("services"),
  // With what lies in a queue its instances would wait for ever: nobody can know of it.
  "an empty queue re-created": ({ world }, { whom, lastsMs }) => {
    const { broker, clock, names } = world;
    const queues = [names.inboxStream, names.activitiesStream, names.claimsStream, names.sessionsStream];
    const queue = queues[Math.floor(whom * queues.length)] as string;
    const until = clock.monotonic() + lastsMs;
    const look = () => {
      if (broker.streams.get(queue)?.size === 0) recreate(world, queue);
      else if (clock.monotonic() < until) clock.after(5, look);
    };
    look();
    return undefined;
  },
  // For a moment nobody leads some streams; copies that do not lead show what was so seconds ago for longer.
  "leader change, copies lag": ({ world }, { much }) => {
    const { broker, clock } = world;
    const { fate } = broker;
    const some = [...broker.streams.keys()].filter((_, index) => (index + Math.floor(much * 100)) % 2 === 0);
    for (const name of some) broker.silent.add(name);
    clock.after(much * 1_000, () => {
      for (const name of some) broker.silent.delete(name);
    });
    const before = fate.faults.replicaLagMs;
    fate.faults = { ...fate.faults, replicaLagMs: [0, 200 + much * 3_000] };
    return () => {
      fate.faults = { ...fate.faults, replicaLagMs: before };
    };
  },
} satisfies Record<string, Fault>;

export type FaultKind = keyof typeof common | keyof typeof rare;
export const commonKinds = Object.keys(common) as (keyof typeof common)[];
export const rareKinds = Object.keys(rare) as (keyof typeof rare)[];
/** What guards are for: drawn more often than the rest. */
export const cruelKinds: readonly FaultKind[] = [
  "crash",
  "crash at a point",
  "pause at a point",
  "pause, sent is held",
  "pause, sent goes through",
  "an orchestrator and a worker die",
  "server away",
  "clock of the server",
];
export const faults: Record<FaultKind, Fault> = { ...common, ...rare };
