/**
 * A page that shows the conversation's tokens as they come, and kills its worker when you press a button.
 *
 *   npx holdfast dev --app examples/agent/app.ts        # in one terminal
 *   npx tsx examples/agent/page.ts                      # in another: prints the page's address
 */
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Client, connect } from "holdfast";

export interface AgentPage {
  url: string;
  close(): Promise<void>;
}

/** Serves the page of one conversation; starts the conversation unless it runs. */
export async function serveAgentPage(client: Client, id: string, port = 0): Promise<AgentPage> {
  // The same id again changes nothing.
  await client.start("agent-conversation", {}, { id });
  const html = readFileSync(new URL("page.html", import.meta.url));
  const server = createServer((request, response) => {
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const route = `${request.method} ${request.url}`;
    const act = async (): Promise<unknown> => {
      if (route === "GET /") return response.writeHead(200, { "content-type": "text/html" }).end(html);
      if (route === "GET /tokens")
        return tokens(client, id, request.headers["last-event-id"]?.toString(), response);
      // Only from this page itself: a form of another site cannot send this header.
      if (request.headers["x-agent-page"] === undefined) return answer(404, {});
      if (route === "POST /say") {
        let text = "";
        for await (const chunk of request) text += String(chunk);
        await client.signal(id, "say", text);
        return answer(200, {});
      }
      if (route === "POST /kill") return answer(200, await killHolder(client, id));
      return answer(404, {});
    };
    act().catch((error: unknown) => {
      if (!response.headersSent)
        answer(500, { error: error instanceof Error ? error.message : String(error) });
      else response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * The id of an event is the chunk's offset, so a browser that loses its line comes back with `Last-Event-ID` and goes on
 * behind it, without a gap and without a repetition.
 */
async function tokens(client: Client, id: string, last: string | undefined, response: ServerResponse) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write("retry: 300\n\n");
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  for await (const item of client.stream(id, { after: Number(last ?? 0), signal: gone.signal }))
    response.write(`id: ${item.offset}\ndata: ${JSON.stringify(item)}\n\n`);
  response.end("event: end\ndata: {}\n\n");
}

/** kill -9 of the worker that holds the conversation. It must run on this machine, as those of `holdfast dev` do. */
async function killHolder(client: Client, instanceId: string): Promise<{ killed: string | undefined }> {
  const [session] = await client.sessions.list({ instanceId });
  const holder = (await client.workers.list()).find(({ workerId }) => workerId === session?.workerId);
  if (holder) process.kill(holder.pid, "SIGKILL");
  return { killed: holder?.workerId };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const page = await serveAgentPage(await connect(), "chat", 4450);
  console.log(page.url);
}
