import type { Socket } from "node:net";

/**
 * Whole lines, however they arrive. (`node:readline` throws errors of the socket where no code can catch
 * them.)
 */
export function onLines(socket: Socket, onLine: (line: string) => void): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
}
