/** A NATS server with a given INFO, which answers every request alike. */
import { createServer } from "node:net";

export async function startGreeting(
  info: Record<string, unknown>,
  /**
   * The answer to a request; `nobody` is the answer of a server without a subscriber for it. Without: none.
   */
  answer: () => object | "nobody" | undefined = () => undefined,
  /** The error it sends at a log-in before it closes. Without: all may log in. */
  refusal?: string,
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
    let sid = "";
    socket.on("data", (data): unknown => {
      for (const line of data.toString().split("\r\n")) {
        const [verb, , third, fourth] = line.split(" ");
        if (verb === "CONNECT" && refusal !== undefined) return socket.end(`-ERR '${refusal}'\r\n`);
        if (verb === "PING") socket.write("PONG\r\n");
        if (verb === "SUB") sid = fourth ?? third ?? "";
        const said = verb === "PUB" ? answer() : undefined;
        if (said === "nobody") socket.write(`HMSG ${third} ${sid} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`);
        else if (said) {
          const body = JSON.stringify(said);
          socket.write(`MSG ${third} ${sid} ${body.length}\r\n${body}\r\n`);
        }
      }
      return undefined;
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
