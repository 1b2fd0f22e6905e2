/**
 * esbuild, which compiles applications here and in many builds, lowers `using` to variables that outlive the
 * block: in a loop, the failure of one round is thrown again by every later round, though that round
 * succeeded. The corrected code keeps the failure on the list of resources, which each round makes anew. The
 * replacement is no longer than the original (unless names were shortened) and is padded with blanks: source
 * maps stay right.
 */

/** `catch (_) { var _error = _, _hasError = true; } finally { var _promise = __callDispose(_stack, _error, _hasError)` */
export const loweredUsing =
  /(catch\s*\(([\w$]+)\)\s*\{\s*)(var\s+([\w$]+)\s*=\s*\2\s*,\s*([\w$]+)\s*=\s*(?:true|!0))(;?\s*\}\s*finally\s*\{\s*(?:var\s+[\w$]+\s*=\s*)?[\w$]+\(([\w$]+)\s*,\s*)(\4\s*,\s*\5)(\s*\))/g;

/**
 * Returns the code with `using` as the language defines it. The text of this function also runs on the
 * loader's thread.
 */
export function correctUsing(code: string): string {
  return code.replace(loweredUsing, (...found: string[]) => {
    const [, open = "", caught, kept = "", , , middle, stack, passed = "", close] = found;
    const keep = `${stack}.e=[${caught},!0]`.padEnd(kept.length);
    const pass = `...${stack}.e||[]`.padEnd(passed.length);
    return `${open}${keep}${middle}${pass}${close}`;
  });
}

/** True if the code contains no lowered `using`. */
export const hasNoLoweredUsing = (code: string): boolean => code.search(loweredUsing) < 0;

/** True if the compiled function has a lowered `using` inside a loop: it does not do what its source says. */
export function isMiscompiled(compiled: string): boolean {
  for (const { index } of compiled.matchAll(loweredUsing)) if (isInLoop(compiled, index)) return true;
  return false;
}

/** Searches outwards, block by block, up to the function. */
function isInLoop(code: string, at: number): boolean {
  let closed = 0;
  for (let index = at - 1; index >= 0; index--) {
    if (code[index] === "}") closed++;
    if (code[index] !== "{" || closed-- > 0) continue;
    closed = 0;
    const header = code.slice(Math.max(0, index - 300), index);
    if (/(?:\b(?:for|while)\s*(?:await\s*)?\([^{}]*\)|\bdo)\s*(?:try\s*)?$/.test(header)) return true;
    if (/=>\s*$|\bfunction\b[^{}]*\)\s*$/.test(header)) return false;
  }
  return false;
}
