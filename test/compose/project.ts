/** compose.yaml, up under a name of its own, on ports of its own. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { packageDir } from "../../services/version.ts";
import { pickFreePort } from "../../shared/embedded-nats/free-port.ts";
import { until } from "../support/processes/stack.ts";
import { attempt, command, type Finished } from "./command.ts";
import { docker, type Engine } from "./engine/index.ts";

const Listed = z.looseObject({
  ID: z.string(),
  Name: z.string(),
  Service: z.string(),
  State: z.string(),
  Health: z.string(),
  ExitCode: z.int(),
});

export interface Container {
  id: string;
  /** As the process inside sees it. */
  host: string;
  name: string;
  service: string;
  state: string;
  health: string;
  exitCode: number;
}

export interface ProjectOptions {
  name: string;
  /** For files of the project. */
  folder: string;
  /** Laid over compose.yaml. */
  override: object;
  /** What a user has in .env. */
  env: Record<string, string>;
  profiles?: readonly string[];
}

/** They make keys and streams, and end. */
const runOnce = ["security", "provision"];

const upWithinMs = 300_000;

export class Project implements AsyncDisposable {
  readonly name: string;
  readonly ports: { nats: number[]; gateway: number };
  readonly #engine: Engine;
  readonly #folder: string;
  readonly #override: string;
  readonly #profiles: readonly string[];
  #env: Record<string, string>;

  private constructor(engine: Engine, options: ProjectOptions, ports: Project["ports"], override: string) {
    this.#engine = engine;
    this.name = options.name;
    this.ports = ports;
    this.#folder = options.folder;
    this.#override = override;
    this.#profiles = options.profiles ?? [];
    this.#env = options.env;
  }

  static async create(engine: Engine, options: ProjectOptions): Promise<Project> {
    const override = join(options.folder, `${options.name}.json`);
    await writeFile(override, JSON.stringify(options.override));
    const nats = [await pickFreePort(), await pickFreePort(), await pickFreePort()];
    return new Project(engine, options, { nats, gateway: await pickFreePort() }, override);
  }

  /** What a user would change in .env before the next `up`. */
  set(env: Record<string, string>): void {
    this.#env = { ...this.#env, ...env };
  }

  compose(...args: string[]): Promise<string> {
    return command("docker", this.#arguments(args), this.#options());
  }

  attempt(...args: string[]): Promise<Finished> {
    return attempt("docker", this.#arguments(args), { ...this.#options(), timeoutMs: 120_000 });
  }

  /** Up, every container healthy, and those that run once have ended well. */
  async up(...args: string[]): Promise<void> {
    await this.compose("up", "-d", "--no-build", ...args);
    await this.healthy();
  }

  async healthy(): Promise<void> {
    await until(
      "every container is healthy",
      async () =>
        (await this.containers()).every(({ service, state, health, exitCode }) =>
          runOnce.includes(service)
            ? state === "exited" && exitCode === 0
            : `${state} ${health}` === "running healthy",
        ),
      upWithinMs,
    );
  }

  async containers(service?: string): Promise<Container[]> {
    const lines = (await this.compose("ps", "-a", "--no-trunc", "--format", "json")).trim().split("\n");
    const all = lines
      .filter((line) => line !== "")
      .map((line) => Listed.parse(JSON.parse(line)))
      .map(({ ID, Name, Service, State, Health, ExitCode }) => ({
        id: ID,
        host: ID.slice(0, 12),
        name: Name,
        service: Service,
        state: State,
        health: Health,
        exitCode: ExitCode,
      }));
    return service === undefined ? all : all.filter((container) => container.service === service);
  }

  async containerOf(host: string): Promise<Container> {
    const found = (await this.containers()).find((container) => container.host === host);
    if (!found) throw new Error(`no container is called ${host}`);
    return found;
  }

  /** The key of a role, as a user copies it out. */
  async keyOf(role: string): Promise<string> {
    const copy = join(this.#folder, `${this.name}-${role}.nk`);
    await this.compose("cp", `security:/keys/${role}/user.nk`, copy);
    return (await readFile(copy, "utf8")).trim();
  }

  docker(...args: string[]): Promise<string> {
    return docker(this.#engine, ...args);
  }

  /** What a container has said so far, on both channels. */
  async said(id: string): Promise<string> {
    const { stdout, stderr } = await attempt("docker", ["logs", id], { env: this.#engine.env });
    return `${stdout}${stderr}`;
  }

  /** Everything anybody complained about, and the last words of each. */
  async logs(): Promise<string> {
    const { stdout, stderr } = await this.attempt("logs", "--no-color");
    const complaints = stdout
      .split("\n")
      .filter((line) => /"level":"(warn|error|fatal)"|\[(WRN|ERR|FTL)\]/.test(line));
    const last = await this.attempt("logs", "--tail", "25", "--no-color");
    return [...complaints.slice(-200), "", last.stdout, stderr].join("\n");
  }

  /** Down with its volumes; nothing is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.compose("down", "--volumes", "--remove-orphans", "--timeout", "60");
  }

  #arguments(args: readonly string[]): string[] {
    const files = [join(packageDir(), "compose.yaml"), this.#override].flatMap((file) => ["-f", file]);
    const profiles = this.#profiles.flatMap((profile) => ["--profile", profile]);
    const project = ["--project-directory", packageDir(), "-p", this.name];
    return ["compose", "--ansi", "never", "--progress", "plain", ...project, ...files, ...profiles, ...args];
  }

  #options() {
    const [nats = 0, second = 0, third = 0] = this.ports.nats;
    const env = {
      ...this.#engine.env,
      DEPLOY_NATS_PORT: String(nats),
      DEPLOY_NATS_PORT_2: String(second),
      DEPLOY_NATS_PORT_3: String(third),
      DEPLOY_GATEWAY_PORT: String(this.ports.gateway),
      ...this.#env,
    };
    return { env, timeoutMs: 1_200_000 };
  }
}
