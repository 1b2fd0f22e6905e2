/** Randomness as an argument: real in production, seeded in simulation and inside orchestrations. */
export interface Random {
  /** In [0, 1). */
  next(): number;
}

const realRandom = Math.random;
export const systemRandom: Random = { next: () => realRandom() };

/** mulberry32: small, fast, good enough for jitter and simulation; not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
    },
  };
}

/** FNV-1a, the server's own hash for `partition()`. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) {
    hash ^= byte;
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash;
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

/** A random token, safe in any subject. 16 characters carry 82 bits. */
export function token(random: Random, length = 16): string {
  let text = "";
  for (let i = 0; i < length; i++) text += alphabet[Math.floor(random.next() * alphabet.length)];
  return text;
}

/** A version-4 shaped UUID from the given randomness. */
export function uuid(random: Random): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random.next() * 16).toString(16));
  hex[12] = "4";
  hex[16] = "89ab"[Math.floor(random.next() * 4)] ?? "8";
  const text = hex.join("");
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}
