/** Reads the header `Nats-TTL` of a stored message, in milliseconds: `15s`, `1m0s`, or plain seconds. */
export function parseTtl(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$/.exec(text);
  if (!match || text === "") return undefined;
  const [, hours = "0", minutes = "0", seconds = "0"] = match;
  return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
}
