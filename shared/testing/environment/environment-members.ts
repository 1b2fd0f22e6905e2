/**
 * The workers and orchestrators of an environment: starts them, kills them at fault points and replaces the
 * dead.
 */
import type { SessionAtPoint } from "../../../services/fault-points.ts";
import type { UserCode } from "../fakes/user-code.ts";
import type { OnPoint } from "../world/members.ts";
import { type FaultPointName, faultPoints } from "./options.ts";
import type { ServiceName, SystemMember, TestSystem } from "./system.ts";

type Mortal = Exclude<ServiceName, "watcher">;

/** The session a test means, by its id or its type. */
type MeantSession = { readonly id: string } | { readonly type: string };

interface Trap {
  point: string;
  left: number;
  /** Undefined: whichever session's work gets there. */
  session: MeantSession | undefined;
}

export class EnvironmentMembers {
  /** How often each fault point was reached. */
  readonly reached = new Map<FaultPointName, number>();
  readonly #code: UserCode;
  readonly #members = new Map<string, { service: Mortal; member: SystemMember }>();
  #watcher: SystemMember | undefined;
  #system: TestSystem | undefined;
  #traps: Trap[] = [];
  #commits = 0;
  #over = false;

  constructor(code: UserCode) {
    this.#code = code;
  }

  /** Number of commits of all instances so far. */
  get commits(): number {
    return this.#commits;
  }

  async start(system: TestSystem, counts: { workers: number; orchestrators: number }): Promise<void> {
    this.#system = system;
    for (let i = 0; i < counts.orchestrators; i++) await system.wait(this.#join("orchestrator"));
    for (let i = 0; i < counts.workers; i++) await system.wait(this.#join("worker"));
    this.#watcher = await system.wait(system.join("watcher"));
  }

  /**
   * The member that reaches this fault point for the n-th time dies there; at the points of sessions, with the
   * work of this one.
   */
  dieAt(at: FaultPointName, count: number, session?: MeantSession): void {
    this.#traps.push({ point: faultPoints[at], left: count, session });
  }

  /** Kills a member, this one or any, and starts another in its place. */
  async kill(service: Mortal, id: string | undefined): Promise<void> {
    const victim = [...this.#members].find(
      ([each, { service: of }]) => of === service && (id === undefined || each === id),
    );
    if (!victim) throw new Error(`there is no ${service}${id === undefined ? "" : ` ${id}`} to kill`);
    const [victimId, { member }] = victim;
    member.kill();
    await this.#system?.wait(this.#replace(service, victimId));
  }

  killAll(): void {
    this.#over = true;
    for (const { member } of this.#members.values()) member.kill();
    this.#watcher?.kill();
  }

  readonly reach: OnPoint = (point, memberId, die, session): void => {
    if (point === "turn.after_append") this.#commits++;
    for (const [name, of] of Object.entries(faultPoints))
      if (of === point && isFaultPointName(name)) this.reached.set(name, (this.reached.get(name) ?? 0) + 1);
    const trap = this.#traps.find((each) => each.point === point && isMeant(each.session, session));
    if (!trap || --trap.left > 0 || this.#over) return;
    this.#traps = this.#traps.filter((each) => each !== trap);
    const service = this.#members.get(memberId)?.service;
    if (!service) return;
    die();
    // Not awaited: the test's next wait lets time pass for the replacement too.
    void this.#replace(service, memberId);
  };

  async #join(service: Mortal): Promise<void> {
    if (!this.#system) return;
    const member = await this.#system.join(service);
    // The environment was closed meanwhile.
    if (this.#over) member.kill();
    else this.#members.set(member.id, { service, member });
  }

  async #replace(service: Mortal, id: string): Promise<void> {
    this.#members.delete(id);
    this.#code.forget(id);
    await this.#join(service);
  }
}

const isMeant = (meant: MeantSession | undefined, session: SessionAtPoint | undefined): boolean =>
  !meant || !session || ("id" in meant ? meant.id === session.id : meant.type === session.type);

const isFaultPointName = (name: string): name is FaultPointName => name in faultPoints;
