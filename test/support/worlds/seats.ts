/** What the journal of `test/apps/lent.ts` must hold: a seat is one orchestration's until that is done with it. */
import { expect } from "vitest";
import type { Journal } from "../processes/journal.ts";

/** Per member and epoch, the turns of its users: no user comes back to a seat that another had in between. */
export function checkTurns(journal: Journal, name: string): Map<string, string[]> {
  const turns = new Map<string, string[]>();
  for (const line of journal.lines(`sit ${name} `)) {
    const [, , by = "", member = "", , epoch = ""] = line.split(" ");
    const key = `${member}@${epoch}`;
    const users = turns.get(key) ?? [];
    if (users.at(-1) !== by) users.push(by);
    turns.set(key, users);
    expect(new Set(users).size, `${key} was taken from somebody: ${users.join(" ")}`).toBe(users.length);
  }
  return turns;
}
