/** The NATS server: its version, its settings as far as clients see them, its clock, its streams. Pure. */
import { skewOf } from "../../../shared/bus/index.ts";
import { megabytes, span } from "../terminal/text.ts";
import type { Finding, ServerObservations } from "./observations.ts";

export const serverFindings = (seen: ServerObservations): Finding[] => [
  server(seen),
  disk(seen),
  ...payload(seen),
  ...writes(seen),
  limits(seen),
  ...streamLimits(seen),
  ...clock(seen),
  ...serverClocks(seen),
  streams(seen),
  ...replicas(seen),
];

/** An older one is refused when we connect. */
const server = ({ version, maxPayloadBytes }: ServerObservations): Finding => ({
  code: "server",
  what: "NATS server",
  verdict: "good",
  found: `version ${version}, JetStream, messages up to ${megabytes(maxPayloadBytes)}`,
});

function disk({ sync, streams }: ServerObservations): Finding {
  const fact = { code: "disk", what: "disk" };
  if (sync === "always")
    return { ...fact, verdict: "good", found: "every write is flushed before it is acknowledged" };
  if (sync === undefined) {
    return {
      ...fact,
      verdict: "note",
      found: "clients cannot see when this server flushes",
      todo: streams.some(({ info }) => (info?.replicas ?? 1) > 1)
        ? "copies survive the power cut of a minority of the servers; one of all of them at once, only with `sync_interval: always` on each"
        : "one server loses up to two minutes of acknowledged writes in a power cut, unless it has `sync_interval: always`",
    };
  }
  return {
    ...fact,
    verdict: "note",
    found: "flushed every two minutes: survives the death of any process, not a power cut",
    todo: "set `sync_interval: always` where a power cut must not cost acknowledged writes",
  };
}

/** User values up to 256 KiB travel inside messages, and several of them in one commit. */
const smallestPayload = 512 * 1024;

function payload({ maxPayloadBytes }: ServerObservations): Finding[] {
  if (maxPayloadBytes >= smallestPayload) return [];
  return [
    {
      code: "max_payload",
      what: "message size",
      verdict: "wrong",
      found: `messages of at most ${Math.floor(maxPayloadBytes / 1024)} KiB`,
      todo: "set `max_payload: 1MB` in the server's configuration",
    },
  ];
}

function writes({ write }: ServerObservations): Finding[] {
  if (write === undefined) return [];
  const fact = { code: "writes", what: "writes" };
  switch (write.kind) {
    case "stored":
      return [{ ...fact, verdict: "good", found: "one was stored, and removed again" }];
    case "refused":
      return [
        {
          ...fact,
          verdict: "wrong",
          found: `the server refuses them: ${write.why}`,
          todo: "free disk space, or raise `max_file_store` of the server or the account's limit; everything goes on by itself",
        },
      ];
    case "unanswered":
      return [
        {
          ...fact,
          verdict: "wrong",
          found: "one was not answered: nothing can be recorded",
          todo: "see whether a majority of the servers is up and the disk is well (`nats stream report`)",
        },
      ];
  }
}

/** A limit is reported from this share on. */
const nearly = 0.8;

function limits({ account }: ServerObservations): Finding {
  const { streams, consumers, bytes, maxStreams, maxConsumers, maxBytes } = account;
  const all = [
    { what: "streams", used: streams, max: maxStreams, shown: String },
    { what: "consumers", used: consumers, max: maxConsumers, shown: String },
    { what: "storage", used: bytes, max: maxBytes, shown: megabytes },
  ];
  const found = all
    .map(
      ({ what, used, max, shown }) => `${what} ${shown(used)}${max === undefined ? "" : ` of ${shown(max)}`}`,
    )
    .join(", ");
  const full = all.filter(({ used, max }) => max !== undefined && used >= max * nearly);
  const fact = { code: "limits", what: "account limits", found };
  if (full.length === 0) return { ...fact, verdict: "good" };
  const over = full.some(({ used, max }) => max !== undefined && used >= max);
  return {
    ...fact,
    verdict: over ? "wrong" : "note",
    todo: `raise the account's limit on ${full.map(({ what }) => what).join(", ")}, or make room (shorter retention)`,
  };
}

/** Limits set by operators: when one is reached, the server refuses new messages or drops old ones. */
function streamLimits({ streams }: ServerObservations): Finding[] {
  const full = streams.flatMap(({ name, info, rolls }) => {
    if (!info || rolls) return [];
    const shares = [
      { of: "bytes", share: info.maxBytes === undefined ? 0 : info.bytes / info.maxBytes },
      { of: "messages", share: info.maxMessages === undefined ? 0 : info.messages / info.maxMessages },
    ];
    return shares.filter(({ share }) => share >= nearly).map(({ of, share }) => ({ name, of, share }));
  });
  if (full.length === 0) return [];
  return [
    {
      code: "stream_limits",
      what: "stream limits",
      verdict: full.some(({ share }) => share >= 1) ? "wrong" : "note",
      found: full
        .map(({ name, of, share }) => `${name} ${Math.floor(share * 100)} % of its ${of}`)
        .join(", "),
      todo: "`nats stream edit <name>`: streams of the engine need no limit of their own",
    },
  ];
}

const skewNotedMs = 250;
const skewWrongMs = 2_000;

function clock({ clock }: ServerObservations): Finding[] {
  if (!clock) return [];
  const { aheadMs, unsureMs } = clock;
  const off = Math.max(0, Math.abs(aheadMs) - unsureMs);
  const verdict = off > skewWrongMs ? "wrong" : off > skewNotedMs ? "note" : "good";
  const direction = aheadMs > 0 ? "ahead of" : "behind";
  return [
    {
      code: "clock",
      what: "clock",
      verdict,
      found:
        verdict === "good"
          ? `the server's clock and this machine's agree within ${span(Math.max(1, off, unsureMs))}`
          : `the server's clock is ${span(off)} ${direction} this machine's`,
      ...(verdict === "good" ? {} : { todo: "run NTP on both; timers fire by the server's clock" }),
    },
  ];
}

/** The largest clock error that the shortest default lease (the watcher's) tolerates. */
const leaseMarginMs = 300;

function serverClocks({ serverClocks }: ServerObservations): Finding[] {
  if (serverClocks.length < 2) return [];
  const { leastMs, mostMs } = skewOf(serverClocks);
  const fact = { code: "server_clocks", what: "servers' clocks" };
  if (leastMs <= leaseMarginMs) {
    const found = `${serverClocks.length} servers agree within ${span(Math.max(1, mostMs))}`;
    return [{ ...fact, verdict: "good", found }];
  }
  const sorted = [...serverClocks].sort((a, b) => a.aheadMs - b.aheadMs);
  return [
    {
      ...fact,
      verdict: "wrong",
      found: `${sorted.at(-1)?.server} is at least ${span(leastMs)} ahead of ${sorted[0]?.server}`,
      todo: "run NTP on every NATS server: leases end early by as much when another takes the lead; services whose leases are shorter than three times that refuse to start",
    },
  ];
}

function streams({ streams }: ServerObservations): Finding {
  const fact = { code: "streams", what: "streams" };
  const missing = streams.filter(({ info }) => info === undefined).map(({ name }) => name);
  if (missing.length === streams.length) {
    return {
      ...fact,
      verdict: "wrong",
      found: "none: nothing was ever run on this server under this prefix",
      todo: "start a service; whichever comes first creates them. Or name the installation with --prefix",
    };
  }
  if (missing.length > 0) {
    return {
      ...fact,
      verdict: "wrong",
      found: `missing: ${missing.join(", ")}`,
      todo: "restart a service: it creates what is missing",
    };
  }
  const bytes = streams.reduce((sum, { info }) => sum + (info?.bytes ?? 0), 0);
  return { ...fact, verdict: "good", found: `${streams.length}, ${megabytes(bytes)}` };
}

function replicas({ streams, replicas }: ServerObservations): Finding[] {
  const infos = streams.flatMap(({ info }) => info ?? []);
  if (infos.length === 0) return [];
  const fewest = Math.min(...infos.map((info) => info.replicas));
  const low = infos.filter((info) => info.replicas < replicas.wanted).map(({ name }) => name);
  const fact = { code: "replicas", what: "replicas" };
  const most = Math.max(...infos.map((info) => info.replicas));
  if (low.length === 0 && most > fewest) {
    const few = infos.filter((info) => info.replicas < most).map(({ name }) => name);
    return [
      {
        ...fact,
        verdict: "wrong",
        found: `from ${fewest} to ${most}: fewest of ${some(few)}`,
        todo: `nats stream edit <name> --replicas ${most}, and NATS_REPLICAS=${most} for every service`,
      },
    ];
  }
  if (low.length === 0 && fewest > replicas.wanted) {
    return [
      {
        ...fact,
        verdict: "note",
        found: `${fewest} copies of everything, but NATS_REPLICAS is ${replicas.wanted} here`,
        todo: `set NATS_REPLICAS=${fewest} for every service: what they create anew would have fewer copies`,
      },
    ];
  }
  if (low.length === 0) {
    return [
      {
        ...fact,
        verdict: "good",
        found: fewest === 1 ? "one copy of everything" : `${fewest} copies of everything`,
      },
    ];
  }
  return [
    {
      ...fact,
      verdict: "wrong",
      found: `fewer than the ${replicas.wanted} wanted: ${some(low)}`,
      todo: `nats stream edit <name> --replicas ${replicas.wanted}; NATS_REPLICAS counts only when a stream is made`,
    },
  ];
}

const some = (names: readonly string[]): string =>
  `${names.slice(0, 5).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}`;
