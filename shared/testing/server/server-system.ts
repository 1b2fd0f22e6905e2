/**
 * The engine on a real NATS server: its services run in the test's process, each with a connection of its
 * own.
 */
import {
  type Bus,
  connectBus,
  defaultTopology,
  ensureTopology,
  type Subjects,
  subjects,
} from "../../bus/index.ts";
import { readInfo } from "../../embedded-nats/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { type Clock, maskUrl, type Runtime, seededRandom, silent, systemClock } from "../../runtime/index.ts";
import { Client } from "../../sdk/index.ts";
import { MemberClock } from "../clock/member-clock.ts";
import { longestUpkeepMs } from "../clock/simulated-clock.ts";
import type { ServiceName, SystemMember, SystemOptions, TestSystem } from "../environment/system.ts";
import {
  historiesAt,
  historyShards,
  orchestratorAt,
  type Place,
  watcherAt,
  workerAt,
} from "../world/members.ts";
import { CalendarClock } from "./calendar-clock.ts";
import { memberBus } from "./member-bus.ts";
import { MemberConnection } from "./member-connection.ts";
import { hasten, pendingSchedules } from "./pending-schedules.ts";
import { ownPrefix, type UsedServer, useServer } from "./servers.ts";

/** Shorter than in production, so that a test notices a loss soon; long enough for a busy machine. */
const leaseTtl = "2s";
/** After this long without a record and without running code, every member waits for a date. */
const quietMs = 500;
/** After a death or an outage the members need this long to notice it. */
const recoveryMs = 10_000;
/** After this long without a record and without a dated timer, the awaited thing will not come. */
const patienceMs = longestUpkeepMs + 1_000;
const lookEveryMs = 20;

interface Connected {
  place: Place;
  /** The bus with the server's own times. */
  real: Bus;
  kill(): void;
  close(): Promise<void>;
}

export class ServerSystem implements TestSystem {
  readonly client: Client;
  readonly #options: SystemOptions;
  readonly #server: UsedServer;
  readonly #names: Subjects;
  readonly #calendar: CalendarClock;
  readonly #outside: Connected;
  readonly #connections: Set<MemberConnection>;
  readonly #random;
  #members = 0;
  #seen = { progress: 0, quietMs: 0, lookedAt: systemClock.monotonic() };
  #recoveredAt = 0;

  private constructor(
    options: SystemOptions,
    parts: {
      server: UsedServer;
      names: Subjects;
      calendar: CalendarClock;
      connections: Set<MemberConnection>;
      outside: Connected;
    },
  ) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#server = parts.server;
    this.#names = parts.names;
    this.#calendar = parts.calendar;
    this.#connections = parts.connections;
    this.#outside = parts.outside;
    this.client = new Client(parts.outside.place);
  }

  static async create(nats: string, options: SystemOptions): Promise<ServerSystem> {
    const server = await useServer(nats);
    try {
      await ensureAnswered(server.url);
      const names = subjects(ownPrefix());
      const calendar = new CalendarClock(options.startsAt);
      const connections = new Set<MemberConnection>();
      const runtime = { clock: calendar, random: seededRandom(options.seed), announce: silent };
      const outside = await connectMember(server.url, { names, calendar, connections, runtime });
      return new ServerSystem(options, { server, names, calendar, connections, outside });
    } catch (error) {
      await server.release();
      throw error;
    }
  }

  get clock(): Clock {
    return this.#calendar;
  }

  prepare(): Promise<void> {
    return ensureTopology(this.#outside.place.bus, this.#names, {
      ...defaultTopology,
      partitions: 1,
      historyShards,
    });
  }

  async join(service: ServiceName): Promise<SystemMember> {
    const names = this.#names;
    const calendar = this.#calendar;
    const clock = new MemberClock(calendar);
    const runtime: Runtime = { clock, random: this.#random, announce: silent };
    const { place, kill } = await connectMember(this.#server.url, {
      names,
      calendar,
      connections: this.#connections,
      runtime,
    });
    const die = () => {
      this.#recoveredAt = systemClock.monotonic() + recoveryMs;
      clock.pause();
      kill();
    };
    const id = await this.#start(service, place, die);
    return { id, kill: die };
  }

  async #start(service: ServiceName, place: Place, die: () => void): Promise<string> {
    const { app, alwaysReplay, onPoint } = this.#options;
    const number = ++this.#members;
    if (service === "worker") {
      const worker = workerAt(place, {
        app,
        host: `host-${number}`,
        leaseTtl,
        faultPoints: (workerId) => ({
          reach: (point, session) => onPoint(point, workerId, die, session),
        }),
      });
      await worker.start();
      return worker.id;
    }
    const id = `${service}-${number}`;
    const member =
      service === "orchestrator"
        ? orchestratorAt(place, {
            id,
            app,
            partitions: 1,
            layout: "per-instance",
            replicas: 1,
            alwaysReplay,
            faultPoints: { reach: (point) => onPoint(point, id, die) },
          })
        : watcherAt(place, { id, keepEnded: true, histories: historiesAt(place, 1) });
    await member.start();
    return id;
  }

  async wait<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    this.#restartQuiet();
    let askedAt = 0;
    while (!done) {
      await Promise.race([work.then(end, end), pause(lookEveryMs)]);
      const quiet = this.#quietMs();
      if (quiet < askedAt) askedAt = 0;
      if (done || quiet < askedAt + (this.#recovering() ? recoveryMs : quietMs)) continue;
      askedAt = quiet;
      const date = await this.#nextDate();
      // A message may have led to a record while this process waited for the server's answer.
      if (this.#quietMs() < quiet) continue;
      if (date) await this.#jump(date);
      else if (quiet >= patienceMs) throw this.#options.stuck([]);
    }
    return work;
  }

  /**
   * Times measured in seconds really pass; dates further away are skipped as soon as every member waits for
   * one.
   */
  async skip(ms: number): Promise<void> {
    if (ms <= longestUpkeepMs) return pause(ms);
    let left = ms;
    while (left > 0) {
      await this.#untilQuiet();
      const step = Math.min(left, (await this.#nextDate()) ?? left);
      await this.#jump(step);
      left -= step;
    }
    await this.#untilQuiet();
  }

  async outage(ms: number): Promise<void> {
    if (this.#connections.size === 0)
      throw new HoldfastError({
        code: "no_outage",
        message: "env.outage cannot cut a connection with TLS: use a server without it, or no server at all",
      });
    for (const connection of this.#connections) connection.disconnect();
    await pause(ms);
    for (const connection of this.#connections) connection.reconnect();
    this.#recoveredAt = systemClock.monotonic() + recoveryMs;
  }

  async close(): Promise<void> {
    try {
      if (!this.#server.own) await this.#tidy(this.#outside.real);
    } finally {
      await this.#outside.close();
      await this.#server.release();
    }
  }

  /** Deletes this test's streams, so that a server that keeps running is left as it was. */
  async #tidy(bus: Bus): Promise<void> {
    const streams = await bus.streamNames(">");
    const own = streams.filter((name) => name.includes(this.#names.prefix));
    await Promise.all(own.map((name) => bus.deleteStream(name)));
  }

  async #jump(ms: number): Promise<void> {
    const { real } = this.#outside;
    const pending = await pendingSchedules(real, this.#names);
    this.#calendar.jump(ms);
    await hasten(real, pending, ms);
    this.#restartQuiet();
  }

  /** In milliseconds from now; undefined if no member waits for a date. */
  async #nextDate(): Promise<number | undefined> {
    const pending = await pendingSchedules(this.#outside.real, this.#names);
    const all = pending.map(({ at }) => Math.max(1, at - systemClock.now()));
    const local = this.#calendar.nextDatedInMs;
    if (local !== undefined) all.push(Math.max(1, local));
    return all.length === 0 ? undefined : Math.min(...all);
  }

  async #untilQuiet(): Promise<void> {
    this.#restartQuiet();
    while (this.#quietMs() < quietMs) await pause(lookEveryMs);
  }

  #recovering(): boolean {
    return systemClock.monotonic() < this.#recoveredAt;
  }

  #restartQuiet(): void {
    this.#seen = { progress: this.#options.progress(), quietMs: 0, lookedAt: systemClock.monotonic() };
  }

  /**
   * For how long no member has recorded anything or run code. A look that comes late counts as one in time: on
   * a busy machine the members come late too.
   */
  #quietMs(): number {
    const now = systemClock.monotonic();
    this.#seen.quietMs += Math.min(now - this.#seen.lookedAt, 2 * lookEveryMs);
    this.#seen.lookedAt = now;
    if (this.#options.busy() > 0 || this.#options.progress() !== this.#seen.progress) this.#restartQuiet();
    return this.#seen.quietMs;
  }
}

async function connectMember(
  url: string,
  {
    names,
    calendar,
    connections,
    runtime,
  }: { names: Subjects; calendar: CalendarClock; connections: Set<MemberConnection>; runtime: Runtime },
): Promise<Connected> {
  const at = plainlyAt(url);
  const connection = at && (await MemberConnection.open(at));
  if (connection) connections.add(connection);
  const cut = () => {
    connection?.cut();
    if (connection) connections.delete(connection);
  };
  const through = connection ? throughProxy(url, connection.port) : url;
  try {
    const real = await connectBus({ url: through, blobBucket: names.blobBucket, announce: silent });
    const { bus, kill } = memberBus(real, calendar, cut);
    const close = async () => {
      await real.close();
      cut();
    };
    return { place: { bus, names, runtime }, real, kill, close };
  } catch (error) {
    cut();
    throw error;
  }
}

const realSetTimeout = setTimeout;
const pause = (ms: number): Promise<void> => new Promise((resolve) => realSetTimeout(resolve, ms));

const plainAddress = /^(?:(nats):\/\/)?([^\s@/]+@)?(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/;

/** Undefined with TLS: the server's certificate would not match the proxy's address. */
function plainlyAt(url: string): { host: string; port: number } | undefined {
  const [, , , host, port] = plainAddress.exec(url) ?? [];
  return host === undefined ? undefined : { host: host.replace(/^\[|\]$/g, ""), port: Number(port ?? 4222) };
}

/** Fails early: a member's error would name the proxy's address, which the test did not choose. */
async function ensureAnswered(url: string): Promise<void> {
  const at = plainlyAt(url);
  if (at === undefined || (await readInfo(at)).kind !== "nobody") return;
  throw new HoldfastError({
    code: "nats_unreachable",
    message: `no NATS server answers at ${maskUrl(url)}: start one there, or use nats: "embedded"`,
  });
}

const throughProxy = (url: string, port: number): string =>
  url.replace(plainAddress, (_all, _scheme, user = "") => `nats://${user}127.0.0.1:${port}`);
