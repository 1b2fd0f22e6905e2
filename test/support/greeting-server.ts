/** A NATS server that only greets, with whatever it is told to say about itself. */
import { createServer } from "node:net";

export async function startGreeting(
  info: Record<string, unknown>,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    const said = {
      server_id: "x",
      max_payload: 1024,
      headers: true,
      proto: 1,
      go: "x",
      host: "x",
      port: 1,
      ...info,
    };
    socket.write(`INFO ${JSON.stringify(said)}\r\n`);
    socket.on("data", (data) => {
      if (data.includes("PING")) socket.write("PONG\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `nats://127.0.0.1:${address.port}`,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
