import { spawn } from "node:child_process";
import { Socket } from "node:net";

/** Containers would be waited for as long as each may take to stop: they are killed, so that the daemon ends at once. */
const script = `
read _
for id in $(docker ps -q); do docker kill "$id"; done
kill -TERM "$1"
n=0
while [ "$n" -lt 300 ] && kill -0 "$1"; do sleep 0.1; n=$((n + 1)); done
kill -KILL "$1"
rm -rf "$2"
[ -z "$3" ] || ip link delete "$3"
`;

interface Watched {
  daemonPid: number;
  folder: string;
  /** Its name; empty if there is none. */
  bridge: string;
  env: NodeJS.ProcessEnv;
}

/**
 * Ends the daemon with its containers and removes its folder when this process dies, in whatever way. A shell waits on a
 * pipe whose other end only this process holds. Returns the function that calls the watch off.
 */
export function watchOwnDeath({ daemonPid, folder, bridge, env }: Watched): () => void {
  const watch = spawn("/bin/sh", ["-c", script, "holdfast-docker-watch", String(daemonPid), folder, bridge], {
    // Its own group: Ctrl-C in the terminal must not take the watch away before its time.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env,
  });
  watch.unref();
  if (watch.stdin instanceof Socket) watch.stdin.unref();
  return () => {
    watch.kill("SIGKILL");
  };
}
