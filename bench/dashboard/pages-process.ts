/**
 * Simulates open dashboard pages as the gateway sees them: reads live connections to the end, in a process of
 * its own.
 */
const [address = "", count = "0"] = process.argv.slice(2);

const seen = { events: 0, bytes: 0 };
let open = 0;

async function page(): Promise<void> {
  const response = await fetch(address);
  if (!response.ok || !response.body) throw new Error(`${address} answered ${response.status}`);
  open++;
  if (open === Number(count)) process.send?.({ open });
  for await (const chunk of response.body) {
    seen.bytes += chunk.length;
    // A frame ends with an empty line; a chunk holds whole frames nearly always.
    if (chunk.at(-1) === 10) seen.events++;
  }
}

process.on("message", () => process.send?.(seen));
process.on("disconnect", () => process.exit(0));
await Promise.all(Array.from({ length: Number(count) }, page));
