/** What is done to the fleet, drawn by lot. Each blow ends what it began. */
import { type Random, sleep, systemClock } from "../../shared/runtime/index.ts";
import type { Weather } from "../support/nats/network.ts";
import { until } from "../support/processes/stack.ts";
import type { Fleet, Member } from "./fleet.ts";

export type Blow = (fleet: Fleet, member: Member, random: Random) => Promise<void>;

const pause = (ms: number) => sleep(systemClock, ms);
/** Around the time to live of leases: shorter as often as longer. */
const aWhile = (random: Random) => pause(1_000 + random.next() * 5_000);

const under =
  (weather: Weather): Blow =>
  async (fleet, member, random) => {
    fleet.weather(member, weather);
    await aWhile(random);
    fleet.weather(member, { kind: "fair" });
  };

const anyServer = (fleet: Fleet, random: Random) =>
  fleet.servers[Math.floor(random.next() * fleet.servers.length)] ?? fleet.servers[0];

export const blows: Readonly<Record<string, Blow>> = {
  kill: async (fleet, member) => {
    member.process.resume();
    member.process.kill("SIGKILL");
    await member.process.exited;
    await fleet.replace(member);
  },
  restart: async (fleet, member) => {
    await Promise.race([member.process.stop(), pause(20_000)]);
    member.process.kill("SIGKILL");
    await member.process.exited;
    await fleet.replace(member);
  },
  pause: async (_fleet, member, random) => {
    member.process.pause();
    await aWhile(random);
    member.process.resume();
  },
  cut: under({ kind: "cut" }),
  silence: under({ kind: "silent", way: "both" }),
  "one way, nothing arrives at NATS": under({ kind: "silent", way: "to server" }),
  "one way, nothing arrives from NATS": under({ kind: "silent", way: "to client" }),
  "half-open": under({ kind: "half-open" }),
  "200 ms ± 100 and 2 % resets": under({ kind: "slow", ms: 200, jitterMs: 100, resets: 0.02 }),
  "kill NATS": async (fleet, _member, random) => {
    const server = anyServer(fleet, random);
    server?.resume();
    await server?.kill();
    await pause(random.next() * 4_000);
    await server?.restart();
  },
  "pause NATS": async (fleet, _member, random) => {
    const server = anyServer(fleet, random);
    server?.pause();
    await aWhile(random);
    server?.resume();
  },
  // Its clients still reach it: it leads nothing, and its copies fall behind.
  "cut a NATS server off from the others": async (fleet, _member, random) => {
    const server = anyServer(fleet, random);
    if (server) fleet.cluster?.cutOff(server);
    await aWhile(random);
    if (server) fleet.cluster?.join(server);
  },
  "fill the store": async (fleet, _member, random) => {
    const { bus } = fleet.stack;
    const stream = "FILLER";
    const block = new Uint8Array(900_000);
    try {
      await bus.ensureStream({ name: stream, subjects: ["filler"], retention: "limits", replicas: 1 });
      for (;;) {
        const outcome = await bus.publish("filler", block, { timeoutMs: 2_000 });
        if (outcome.kind !== "stored") break;
      }
    } catch {
      // No room, or the server is away: both are what a full store looks like.
    }
    await aWhile(random);
    await until(
      "the filler is gone",
      () =>
        bus.deleteStream(stream).then(
          () => true,
          () => false,
        ),
      60_000,
    );
  },
};
