import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** A paused process receives TERM only after CONT. KILL follows five seconds later. */
const script = `
read _
kill -TERM "$1"; kill -CONT "$1"
n=0
while [ "$n" -lt 50 ] && kill -0 "$1"; do sleep 0.1; n=$((n + 1)); done
kill -KILL "$1"
`;

/**
 * Ends the server when this process dies in any way, `kill -9` included. A shell waits on a pipe whose other
 * end only this process holds: the system closes it when the process is gone. Without a shell (Windows) the
 * server is not watched. Returns a function that ends the watch.
 */
export function watchOwnDeath(serverPid: number): () => void {
  const watch = spawn("/bin/sh", ["-c", script, "holdfast-death-watch", String(serverPid)], {
    // A process group of its own: Ctrl-C in the terminal must not end the watch early.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watch.once("error", () => {
    // There is no shell: the server survives a killed parent, and the data folder's lock names it.
  });
  watch.unref();
  if (watch.stdin instanceof Socket) watch.stdin.unref();
  return () => {
    watch.kill("SIGKILL");
  };
}
