// Restate services, in the form the TypeScript SDK documents (services over HTTP/2).
import "../lib/polyfill.mjs";
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";
import { emit, mark, ready, serveCalls, sleep } from "../lib/worker.mjs";

const role = process.env.ROLE; // 'wf' or 'act'
const port = Number(process.env.PORT);
const stepSvc = { name: "steps" };

const flows = restate.service({
  name: "flows",
  handlers: {
    seqRun: async (ctx, { n, key }) => {
      let last;
      for (let i = 0; i < n; i++)
        last = await ctx.run("step", () => {
          mark(key);
          return { i };
        });
      return last;
    },
    seqCall: async (ctx, { n, key }) => {
      const c = ctx.serviceClient(stepSvc);
      let last;
      for (let i = 0; i < n; i++) last = await c.step({ i, key });
      return last;
    },
    fanRun: async (ctx, { n, key }) => {
      const ps = [];
      for (let i = 0; i < n; i++)
        ps.push(
          ctx.run("step", () => {
            mark(key);
            return { i };
          }),
        );
      return (await restate.RestatePromise.all(ps)).length;
    },
    fanCall: async (ctx, { n, key }) => {
      const c = ctx.serviceClient(stepSvc);
      const ps = [];
      for (let i = 0; i < n; i++) ps.push(c.step({ i, key }));
      return (await restate.RestatePromise.all(ps)).length;
    },
    short: async (ctx, { i }) => {
      const a = await ctx.run("a", () => ({ i }));
      const b = await ctx.run("b", () => a);
      return ctx.run("c", () => b);
    },
    shortCall: async (ctx, { i }) => {
      const c = ctx.serviceClient(stepSvc);
      const a = await c.step({ i });
      const b = await c.step(a);
      return c.step(b);
    },
    awaiter: async (ctx, { key, rounds }) => {
      for (let r = 0; r < rounds; r++) {
        const { id, promise } = ctx.awakeable();
        await ctx.run("publish", () => {
          emit("waiting", { key, i: r, awk: id });
        });
        await promise;
        emit("woke", { key, i: r });
      }
      return rounds;
    },
    slow: async (ctx, { n, key, ms }) => {
      for (let i = 0; i < n; i++)
        await ctx.run("slow", async () => {
          emit("step", { key, i });
          await sleep(ms);
          return { i };
        });
      return n;
    },
  },
});
const steps = restate.service({
  name: "steps",
  handlers: {
    step: async (_ctx, { i, key }) => {
      if (key) mark(key);
      return { i };
    },
  },
});
const services = role === "wf" ? [flows] : [steps];
const server = http2.createServer(restate.createEndpointHandler({ services }));
serveCalls({});
server.listen(port, "127.0.0.1", ready);
