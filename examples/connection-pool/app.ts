/** Connections that many calls share. Run it: npx holdfast dev --app examples/connection-pool/app.ts */
import { call, defineOrchestration, defineSession, type InitContext } from "holdfast";
import { z } from "zod";
import { ConnectionPool, type PoolConfig } from "./connection-pool.ts";
import { LittleServer } from "./little-server.ts";

const Address = z.object({ host: z.string().default("127.0.0.1"), port: z.int().min(1).max(65_535) });

/** Opens its connections once; calls take one each, wait for one where all are busy, and give it back. */
export const connectionPool = defineSession("connection-pool", {
  leaseTtl: "3s",
  concurrency: 32,
  config: Address.extend({ size: z.int().min(1).max(100).default(4) }),
  init: (ctx: InitContext, config: PoolConfig) => ConnectionPool.open(config, ctx.signal),
  calls: {
    ask: call({
      input: z.string().regex(/^[^\n]*$/, "one line"),
      output: z.string(),
      timeout: "10s",
      run: (pool: ConnectionPool, question) => pool.use((connection) => connection.ask(question)),
    }),
  },
  snapshot: (pool) => pool.facts,
  shutdown: (pool) => pool.close(),
});

/** Something to talk to, so that the example needs nothing else: it answers every line in capitals. */
export const littleServer = defineSession("little-server", {
  init: () => LittleServer.listen(),
  calls: {
    facts: call({ output: LittleServer.Facts, run: (server: LittleServer) => server.facts }),
  },
  snapshot: (server) => server.facts,
  shutdown: (server) => server.close(),
});

/** `{questions}` → so many questions at once over few connections. With `server` to one of your own. */
export const askMany = defineOrchestration("ask-many", {
  input: z.object({
    questions: z.int().nonnegative().max(10_000).default(100),
    connections: z.int().min(1).max(100).default(4),
    server: Address.optional(),
  }),
  output: z.object({ answers: z.array(z.string()), connections: z.int().optional() }),
  async run(ctx, { questions, connections, server }) {
    await using own = server ? undefined : await ctx.openSession(littleServer);
    const address = server ?? { port: (await own?.facts(undefined))?.port ?? 0 };
    await using pool = await ctx.openSession(connectionPool, {
      config: { ...address, size: connections },
      onLost: "reclaim",
    });
    const asked = Array.from({ length: questions }, (_, i) => pool.ask(`question ${i}`));
    const answers = await Promise.all(asked);
    return { answers, connections: (await own?.facts(undefined))?.connections };
  },
});
