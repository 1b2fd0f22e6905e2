import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Release, releasePlatform } from "../../shared/embedded-nats/fetch-release.ts";
import {
  compareServerVersions,
  findServer,
  formatServerVersion,
  isNewEnough,
  parseServerVersion,
  type ServerExit,
  startEmbeddedNats,
} from "../../shared/embedded-nats/index.ts";
import { processMark } from "../../shared/embedded-nats/process-mark.ts";
import { runCommand } from "../../shared/embedded-nats/run-command.ts";
import { Fault } from "../../shared/errors/index.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { until } from "../support/processes/cli.ts";

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "holdfast-embedded-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const newFolder = (): Promise<string> => mkdtemp(join(root, "t-"));

/** A stand-in that only knows its version. */
async function fakeServer(folder: string, version: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, "nats-server");
  await writeFile(path, `#!/bin/sh\necho 'nats-server: v${version}'\n`);
  await chmod(path, 0o755);
  return path;
}

async function faultOf(act: Promise<unknown>): Promise<Fault> {
  const error = await act.then(
    () => new Error("nothing was thrown"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof Fault) return error;
  throw error;
}

describe("server versions", () => {
  const version = (text: string) => {
    const parsed = parseServerVersion(text);
    if (!parsed) throw new Error(`no version in ${text}`);
    return parsed;
  };

  it("are read from what the server says", () => {
    expect(version("nats-server: v2.15.1\n")).toEqual({ major: 2, minor: 15, patch: 1 });
    expect(formatServerVersion(version("v2.15.0-RC.2"))).toBe("2.15.0-RC.2");
    expect(parseServerVersion("nats-server: dev")).toBeUndefined();
  });

  it("are ordered by number, a pre-release before its release", () => {
    const sorted = ["2.9.10", "2.14.0-RC.2", "2.14.0-RC.10", "2.14.0", "2.14.10", "2.15.0", "10.0.0"];
    const shuffled = [...sorted].reverse().map(version).sort(compareServerVersions);
    expect(shuffled.map(formatServerVersion)).toEqual(sorted);
    expect(["2.13.9", "2.14.0-RC.1", "2.14.0", "2.15.1"].map((v) => isNewEnough(version(v)))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });
});

describe("finding a server", () => {
  it("takes the first on PATH that is new enough and passes by one that is too old", async () => {
    const [old, fresh] = [await newFolder(), await newFolder()];
    await fakeServer(old, "2.9.10");
    const wanted = await fakeServer(fresh, "2.15.3");
    const found = await findServer({
      path: [old, "/does/not/exist", fresh].join(delimiter),
      cacheDir: await newFolder(),
      ways: ["path"],
    });
    expect(found).toEqual({ path: wanted, origin: "path", version: { major: 2, minor: 15, patch: 3 } });
  });

  it("takes the newest of the cache when PATH has only an old one", async () => {
    const [old, cacheDir] = [await newFolder(), await newFolder()];
    await fakeServer(old, "2.9.10");
    await fakeServer(join(cacheDir, "2.14.9"), "2.14.9");
    const wanted = await fakeServer(join(cacheDir, "2.14.10"), "2.14.10");
    await mkdir(join(cacheDir, "2.99.0"));
    const found = await findServer({ path: old, cacheDir, ways: ["path", "cache"] });
    expect(found).toMatchObject({ path: wanted, origin: "cache" });
  });

  it("says in one error why each way failed and what to do", async () => {
    const [old, cacheDir] = [await newFolder(), await newFolder()];
    const oldPath = await fakeServer(old, "2.9.10");
    const release: Release = {
      version: "2.15.0",
      url: "http://127.0.0.1:1",
      sha256: { [releasePlatform()]: "0".repeat(64) },
    };
    const fault = await faultOf(
      findServer({ path: old, cacheDir, release, ways: ["path", "cache", "release"] }),
    );
    expect(fault).toMatchObject({ kind: "config", code: "nats_unavailable" });
    expect(fault.message.split("\n")).toEqual([
      "no nats-server 2.14.0 or newer could be found or fetched",
      `  on PATH: ${oldPath} is 2.9.10, older than 2.14.0`,
      `  in the cache: nothing in ${cacheDir}`,
      expect.stringMatching(/^ {2}official release: http:\/\/127\.0\.0\.1:1\/nats-server-v2\.15\.0-.*: \S/),
    ]);
    expect(fault.hint).toBe(
      "Install nats-server 2.14.0 or newer and put it on PATH, or set NATS_URL to a running server.",
    );
  });
});

describe("fetching the official release", () => {
  /** Serves one tarball laid out as the project lays it out. */
  async function serveRelease(): Promise<Release> {
    const folder = `nats-server-v2.15.9-${releasePlatform()}`;
    const work = await newFolder();
    await fakeServer(join(work, folder), "2.15.9");
    const tar = await runCommand("tar", ["-czf", "r.tar.gz", folder], { cwd: work, timeoutMs: 10_000 });
    expect(tar.kind).toBe("done");
    const bytes = await readFile(join(work, "r.tar.gz"));
    const http = createHttpServer((request, response) => {
      if (request.url === `/v/${folder}.tar.gz`) response.end(bytes);
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      http.closeAllConnections();
      http.close();
    });
    const { port } = http.address() as AddressInfo;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return { version: "2.15.9", url: `http://127.0.0.1:${port}/v`, sha256: { [releasePlatform()]: sha256 } };
  }

  it("puts it into the cache, where it is found from then on", async () => {
    const [release, cacheDir] = [await serveRelease(), await newFolder()];
    const lines: string[] = [];
    const find = () =>
      findServer({
        path: "",
        cacheDir,
        release,
        ways: ["cache", "release"],
        onProgress: (l) => lines.push(l),
      });
    const path = join(cacheDir, "2.15.9", "nats-server");
    expect(await find()).toMatchObject({ path, origin: "release" });
    expect(await find()).toMatchObject({ path, origin: "cache" });
    expect(lines).toEqual(["fetching nats-server 2.15.9 (official release)"]);
  });

  it("refuses a file whose checksum is not the pinned one", async () => {
    const [served, cacheDir] = [await serveRelease(), await newFolder()];
    const release = { ...served, sha256: { [releasePlatform()]: "0".repeat(64) } };
    const fault = await faultOf(findServer({ cacheDir, release, ways: ["release"] }));
    expect(fault.message).toMatch(/expected 0{64}: refused/);
    expect(await readdir(cacheDir)).toEqual([]);
  });

  it("gives the HTTP status as the reason", async () => {
    const [served, cacheDir] = [await serveRelease(), await newFolder()];
    const fault = await faultOf(
      findServer({ cacheDir, release: { ...served, version: "2.15.8" }, ways: ["release"] }),
    );
    expect(fault.message).toContain("HTTP 404");
  });
});

describe.skipIf(!existsSync("/usr/bin/apt-get"))("fetching through the package manager", () => {
  it("fills an empty cache, also when two do it at once", async () => {
    const cacheDir = await newFolder();
    const fetchOne = () => findServer({ cacheDir, ways: ["package"] });
    const [first, second] = await Promise.all([fetchOne(), fetchOne()]);
    expect(first).toEqual(second);
    expect(first.origin).toBe("package");
    expect(isNewEnough(first.version)).toBe(true);
    expect(await readdir(cacheDir)).toEqual([formatServerVersion(first.version)]);
    expect(await findServer({ path: "", cacheDir, ways: ["path", "cache"] })).toEqual({
      ...first,
      origin: "cache",
    });
  }, 120_000);
});

describe("an embedded server", () => {
  it("keeps its data over kill -9 and restart on the same port", async () => {
    await using nats = await startNats();
    const { pid } = nats;
    const write = await connect({ servers: nats.url });
    await (await jetstreamManager(write)).streams.add({ name: "KEPT", subjects: ["kept.>"] });
    for (let i = 0; i < 20; i++) await jetstream(write).publish("kept.a", String(i));
    await write.close();

    await nats.kill();
    expect(processMark(pid)).toBeUndefined();
    await nats.restart();
    await nats.restart();

    expect(nats.pid).not.toBe(pid);
    const read = await connect({ servers: nats.url });
    onTestFinished(() => read.close());
    const kept = await (await jetstreamManager(read)).streams.info("KEPT");
    expect(kept.state.messages).toBe(20);
  });

  it("lets a client wait while it is paused", async () => {
    await using nats = await startNats();
    const nc = await connect({ servers: nats.url });
    onTestFinished(() => nc.close());
    const isSilent = () =>
      connect({ servers: nats.url, timeout: 200, reconnect: false }).then(
        (other) => other.close().then(() => false),
        () => true,
      );
    nats.pause();
    await until(isSilent, "the signal has reached it");
    let answered = false;
    const flushed = nc.flush().then(() => {
      answered = true;
    });
    expect(await isSilent()).toBe(true);
    expect(answered).toBe(false);
    nats.resume();
    await flushed;
  });

  it("can be stopped while paused, and twice is once", async () => {
    const dataDir = await newFolder();
    const exits: ServerExit[] = [];
    const nats = await startEmbeddedNats({ dataDir, onExit: (exit) => exits.push(exit) });
    nats.kill("SIGSTOP");
    await Promise.all([nats.stop(), nats.stop()]);
    await nats.stop();
    expect(exits).toEqual([expect.objectContaining({ asked: true })]);
    expect(nats.kill("SIGTERM")).toBe(false);
  });

  it("tells a crash from a stop", async () => {
    const dataDir = await newFolder();
    const exits: ServerExit[] = [];
    const nats = await startEmbeddedNats({ dataDir, onExit: (exit) => exits.push(exit) });
    nats.kill("SIGKILL");
    await nats.exited;
    await expect.poll(() => exits).toEqual([{ code: null, signal: "SIGKILL", asked: false }]);
  });

  it("says how it flushes", async () => {
    const [interval, always] = [await newFolder(), await newFolder()];
    const first = await startEmbeddedNats({ dataDir: interval });
    const second = await startEmbeddedNats({ dataDir: always, syncAlways: true });
    onTestFinished(() => Promise.all([first.stop(), second.stop()]).then(() => undefined));
    expect([first.sync, second.sync]).toEqual(["interval", "always"]);
    expect(first.port).not.toBe(second.port);
    expect(await readFile(second.logFile, "utf8")).toContain("Server is ready");
  });

  it("refuses a data folder that another live server uses", async () => {
    await using nats = await startNats();
    const fault = await faultOf(startEmbeddedNats({ dataDir: nats.dataDir }));
    expect(fault).toMatchObject({ kind: "config", code: "nats_data_dir_in_use" });
    expect(fault.message).toContain(nats.dataDir);
    expect(fault.message).toContain(String(nats.pid));
  });

  // Only Linux tells when a process started.
  it.skipIf(process.platform !== "linux")(
    "lets only one of several starters have a folder with a dead lock",
    async () => {
      const dataDir = await newFolder();
      // Our own pid with another start time: the pid of a dead server that was given away again.
      const processes = [{ pid: process.pid, mark: "1" }];
      await writeFile(join(dataDir, "holdfast.lock"), JSON.stringify({ token: "dead", processes }));
      const starts = await Promise.allSettled(
        Array.from({ length: 4 }, () => startEmbeddedNats({ dataDir })),
      );
      const servers = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
      onTestFinished(() => Promise.all(servers.map((server) => server.stop())).then(() => undefined));
      expect(servers).toHaveLength(1);
      const codes = starts.flatMap((start) => (start.status === "rejected" ? [start.reason.code] : []));
      expect(codes).toEqual(Array(3).fill("nats_data_dir_in_use"));
    },
  );

  it("never adopts a server that is already on its port", async () => {
    await using foreign = await startNats();
    const dataDir = await newFolder();
    const fault = await faultOf(startEmbeddedNats({ dataDir, port: foreign.port }));
    expect(fault).toMatchObject({ kind: "config", code: "nats_port_taken" });
    expect(fault.message).toMatch(/another NATS server \(holdfast-.*, version 2\./);

    const nc = await connect({ servers: foreign.url });
    await nc.close();
    const own = await startEmbeddedNats({ dataDir });
    expect(own.port).not.toBe(foreign.port);
    await own.stop();
  });

  it("names a port taken by something else", async () => {
    const stranger = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      stranger.close();
    });
    const { port } = stranger.address() as AddressInfo;
    const fault = await faultOf(startEmbeddedNats({ dataDir: await newFolder(), port }));
    expect(fault.code).toBe("nats_port_taken");
    expect(fault.message).toContain("not a NATS server");
  });

  it("gives the server's own words when it does not start, and lets the folder go", async () => {
    const dataDir = await newFolder();
    const fault = await faultOf(startEmbeddedNats({ dataDir, extraConfig: "no_such_option: true" }));
    expect(fault).toMatchObject({ kind: "config", code: "nats_start_failed" });
    expect(fault.message).toContain("no_such_option");
    const nats = await startEmbeddedNats({ dataDir });
    await nats.stop();
  });

  it("does not outlive a starter that is killed, and its folder can be used again", async () => {
    const dataDir = await newFolder();
    const door = new URL("../../shared/embedded-nats/index.ts", import.meta.url).href;
    const code = `
      const { startEmbeddedNats } = await import(${JSON.stringify(door)});
      const nats = await startEmbeddedNats({ dataDir: ${JSON.stringify(dataDir)} });
      console.log(nats.pid);
      setInterval(() => undefined, 1000);`;
    const starter = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const pid = await new Promise<number>((resolve) => {
      starter.stdout.once("data", (line: Buffer) => resolve(Number(line.toString())));
    });
    expect(processMark(pid)).toBeDefined();
    starter.kill("SIGKILL");
    await expect.poll(() => processMark(pid), { timeout: 10_000, interval: 20 }).toBeUndefined();
    const nats = await startEmbeddedNats({ dataDir });
    await nats.stop();
  });

  it("works from a folder with blanks and quotes in its name", async () => {
    const folder = join(await newFolder(), 'a "quoted" $HOME folder');
    await mkdir(folder);
    const { path } = await findServer();
    await symlink(path, join(folder, "nats-server"));
    const nats = await startEmbeddedNats({ dataDir: join(folder, "data"), path: folder });
    expect(existsSync(join(folder, "data", "store"))).toBe(true);
    await nats.stop();
  });
});
