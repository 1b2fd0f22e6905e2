const longest = 5;
const shown = 4;

/**
 * An epoch as people read it. Epochs begin at the server's time in microseconds: sixteen digits, of which only the last
 * ones differ between two holders of one session. Programs get all of them (`--json`, the HTTP API).
 */
export function shortEpoch(epoch: number): string {
  const digits = String(epoch);
  return digits.length <= longest ? digits : `…${digits.slice(-shown)}`;
}
