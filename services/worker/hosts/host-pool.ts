/** The hosts of a worker: one for all inline sessions, and others per session type, by its isolation. */
import type { AnySession, App } from "../../../shared/definitions/index.ts";
import { once, type Runtime } from "../../../shared/runtime/index.ts";
import type { Will } from "../supervise/last-will.ts";
import { commandEnvironment, commandFolder, commandLine } from "./foreign/command.ts";
import { CommandCarrier } from "./foreign/command-carrier.ts";
import { checksThreadSafety, hostEnvironment, threadsOf } from "./host-environment.ts";
import { type HostPolicy, hostPolicy } from "./host-options.ts";
import type { HostPlace, Hosts } from "./hosts.ts";
import { inlineHost } from "./inline-host.ts";
import { type Carrier, noAppFile } from "./isolated/carrier.ts";
import { HostedFailure } from "./isolated/host-client.ts";
import { IsolatedHost } from "./isolated/isolated-host.ts";
import { ProcessCarrier } from "./process/process-carrier.ts";
import { ThreadCarrier } from "./thread/thread-carrier.ts";
import { ThreadGroup } from "./thread/thread-group.ts";
import { TypeHosts } from "./type-hosts.ts";

interface HostPoolOptions {
  app: App;
  appPath: string | undefined;
  runtime: Runtime;
  /** The most sessions that this worker may hold: at most this many hosts compute at a time. */
  maxSessions: number;
  resources: Readonly<Record<string, number>>;
  /** Executed by a process host that sees this worker die. Undefined: the leases expire. */
  will?: Will | undefined;
}

export class HostPool implements Hosts {
  readonly #options: HostPoolOptions;
  readonly #inline: HostPlace;
  readonly #types = new Map<string, TypeHosts>();
  #hosts = 0;

  constructor(options: HostPoolOptions) {
    this.#options = options;
    this.#inline = {
      host: inlineHost(options.app, {
        threads: threadsOf(hostEnvironment(0, options)),
        checksThreadSafety: checksThreadSafety(),
      }),
      leave: () => undefined,
      ran: () => undefined,
      onRetire: () => () => undefined,
    };
  }

  acquire(definition: AnySession | undefined, signal: AbortSignal): Promise<HostPlace> {
    const isolation = definition?.options.isolation ?? "inline";
    if (!definition || isolation === "inline") return Promise.resolve(this.#inline);
    const { appPath } = this.#options;
    // A program of its own brings its own code.
    if (appPath === undefined && definition.options.command === undefined) {
      return Promise.reject(new HostedFailure(noAppFile(definition.name, isolation)));
    }
    return this.#ofType(definition, isolation).acquire(signal);
  }

  stop = once(async () => {
    const all = [...this.#types.values()].map((hosts) => hosts.stop());
    await Promise.all([...all, this.#inline.host.end()]);
  });

  #ofType(definition: AnySession, isolation: "thread" | "process"): TypeHosts {
    const known = this.#types.get(definition.name);
    if (known) return known;
    const policy = hostPolicy(definition);
    const { runtime } = this.#options;
    const hosts = new TypeHosts(runtime, policy, () => {
      const index = this.#hosts++;
      const carrier = this.#carrier(definition, isolation, policy, index);
      const { heartbeat, killGraceMs } = policy;
      const id = `${definition.name}-${index}`;
      return new IsolatedHost({ id, isolation, carrier, runtime, heartbeat, killGraceMs });
    });
    this.#types.set(definition.name, hosts);
    return hosts;
  }

  #carrier(
    definition: AnySession,
    isolation: "thread" | "process",
    policy: HostPolicy,
    index: number,
  ): Carrier {
    const { appPath = "", will } = this.#options;
    const { clock } = this.#options.runtime;
    const { command, cwd, concurrency = 1 } = definition.options;
    const env = hostEnvironment(index, { ...this.#options, env: definition.options.env });
    const { maxMessageBytes, killGraceMs } = policy;
    if (command) {
      return new CommandCarrier({
        ...{ definition, maxMessageBytes, killGraceMs, clock },
        command: commandLine(command),
        cwd: commandFolder(cwd, this.#options.appPath),
        env: commandEnvironment(env, { concurrency, maxMessageBytes }),
      });
    }
    const { threads } = policy;
    const own = Math.max(1, Math.floor(threadsOf(env) / threads));
    const setup = { appPath, threads: own, checksThreadSafety: checksThreadSafety() };
    if (isolation === "process") return new ProcessCarrier(setup, env, clock, will);
    const thread = () => new ThreadCarrier(setup, env, clock);
    if (threads === 1) return thread();
    const others = Array.from({ length: threads - 1 }, thread);
    return new ThreadGroup([thread(), ...others], { shares: definition.share !== undefined });
  }
}
