import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** TERM does not reach a paused process until it goes on, hence CONT. Five seconds are the grace before KILL. */
const script = `
read _
kill -TERM "$1"; kill -CONT "$1"
n=0
while [ "$n" -lt 50 ] && kill -0 "$1"; do sleep 0.1; n=$((n + 1)); done
kill -KILL "$1"
`;

/**
 * Ends the server when this process dies in whatever way, `kill -9` included. A shell waits on a pipe whose other end
 * only this process holds: the system closes it when the process is gone. Without a shell (Windows) nothing watches.
 * Returns the function that calls the watch off.
 */
export function watchOwnDeath(serverPid: number): () => void {
  const watch = spawn("/bin/sh", ["-c", script, "holdfast-death-watch", String(serverPid)], {
    // Its own group: Ctrl-C in the terminal must not take the watch away before its time.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watch.once("error", () => {
    // No shell here: then a killed parent leaves the server running, and the data folder's lock names it.
  });
  watch.unref();
  if (watch.stdin instanceof Socket) watch.stdin.unref();
  return () => {
    watch.kill("SIGKILL");
  };
}
