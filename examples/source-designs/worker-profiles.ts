/**
 * Source design S4, Snakepit's "Workers and Sessions": a process profile, a thread profile, pools of both, and sessions
 * with metadata, programs and a time to live. What Snakepit configures per pool is configured per session type.
 */
import { call, defineOrchestration, defineSession, type InitContext } from "holdfast";
import { z } from "zod";

export const journal: string[] = [];

/** `worker_profile: :process`: full isolation, one request at a time, numeric libraries kept to one thread. */
export const webScraper = defineSession("web_scrapers", {
  isolation: "process",
  env: { OPENBLAS_NUM_THREADS: "1", OMP_NUM_THREADS: "1" }, // adapter_env; also the default of a process host
  host: { ping: { enabled: true, initialDelay: "0s" }, pingInterval: "5s", pingTimeout: "15s", maxMissed: 3 }, // heartbeat
  init: () => ({ scraped: 0 }),
  calls: {
    scrape_url: call({
      input: z.object({ url: z.string() }),
      run: (state: { scraped: number }, { url }) => `${url} #${++state.scraped}`,
    }),
  },
});

/** `worker_profile: :thread`: several calls compute at once on memory they share; recycled by age and by count. */
export const mlInference = defineSession("ml_inference", {
  isolation: "thread",
  threads: 2, // threads_per_worker
  threadSafe: true, // thread_safety_checks
  share: () => new SharedArrayBuffer(4),
  host: { maxAge: "30m", maxCalls: 1000, pingInterval: "10s", pingTimeout: "30s", maxMissed: 2 }, // worker_ttl, worker_max_requests
  init: (ctx: InitContext) => ({ served: new Int32Array(ctx.shared as SharedArrayBuffer) }),
  calls: {
    predict: call({
      input: z.object({ images: z.array(z.string()) }),
      run: ({ served }: { served: Int32Array }, { images }) => {
        Atomics.add(served, 0, images.length);
        return images.map((image) => `${image}: cat`);
      },
    }),
  },
});

/** `Session-Based Execution`: the state a user's requests share, kept for `ttl` after the last one. */
export const userSession = defineSession("user_session", {
  idleTimeout: "2h", // ttl: 7200, touched by every call
  init: (ctx: InitContext) => {
    journal.push(`initialize_model for ${ctx.session.metadata.user_id}`);
    return { calls: 0 };
  },
  calls: {
    predict: call({
      input: z.number(),
      run: (state: { calls: number }, x, ctx) => ({
        y: x * 2,
        calls: ++state.calls,
        user: ctx.session.metadata.user_id,
      }),
    }),
  },
  snapshot: ({ calls }) => ({ calls }), // get_stats
  shutdown: () => void journal.push("delete_session"),
});

/** `Session with Metadata`: results and compiled programs that outlive the worker that made them. */
export const analysisSession = defineSession("analysis_session", {
  init: () => ({ analysed: 0 }),
  calls: {
    /** `update_session`: `put_metadata(:last_analysis, …)` and `put_program("analysis_v1", …)`. */
    analyse: call({
      input: z.string(),
      run: async (state: { analysed: number }, project, { session }) => {
        const program = { status: "completed", result: `${project} #${++state.analysed}` };
        session.setMetadata({ last_analysis: project });
        await session.blobs.put("analysis_v1", new TextEncoder().encode(JSON.stringify(program)));
        return program;
      },
    }),
    /** `get_program` */
    program: call({
      input: z.string(),
      run: async (_state: { analysed: number }, name, { session }) => {
        const bytes = await session.blobs.get(name);
        return bytes ? JSON.parse(new TextDecoder().decode(bytes)) : null;
      },
    }),
    /** `delete_program` */
    forget: call({
      input: z.string(),
      run: (_state: { analysed: number }, name, ctx) => ctx.session.blobs.delete(name),
    }),
  },
});

/** Analyses, pauses, and asks for the program again. */
export const analysis = defineOrchestration("s4-analysis", {
  input: z.object({ project: z.string(), pause: z.string() }),
  async run(ctx, { project, pause }) {
    await using session = await ctx.openSession(analysisSession, {
      metadata: { user_id: "user_123", project },
      onLost: "reclaim",
    });
    const made = await session.analyse(project);
    await ctx.sleep(pause as "1s");
    const found = await session.program("analysis_v1");
    const forgotten = [await session.forget("analysis_v1"), await session.program("analysis_v1")];
    return { made, found, forgotten, metadata: session.info.metadata };
  },
});

/** `Snakepit.execute(:web_scrapers, "scrape_url", …)`: whichever worker of the pool is free. */
export const scrape = defineOrchestration("s4-scrape", {
  input: z.array(z.string()),
  async run(ctx, urls) {
    await using pool = await ctx.usePool(webScraper, { min: 1, max: 2 }); // pool_size
    return await Promise.all(urls.map((url) => pool.scrape_url({ url })));
  },
});

export const classifyImages = defineOrchestration("s4-classify-images", {
  input: z.array(z.string()),
  async run(ctx, images) {
    await using pool = await ctx.usePool(mlInference, { max: 2 });
    return await pool.predict({ images });
  },
});

/** Two requests of one user: the second finds what the first initialized. After the time to live it is made anew. */
export const requests = defineOrchestration("s4-requests", {
  input: z.object({ user: z.string(), pause: z.string() }),
  async run(ctx, { user, pause }) {
    await using session = await ctx.openSession(userSession, {
      metadata: { user_id: user },
      onLost: "reclaim",
    });
    const first = await session.predict(1);
    await ctx.sleep(pause as "1s");
    const second = await session.predict(2);
    return [first, second];
  },
});
