/** The user's own frames of a stack, without those of the engine and of Node. Pure. */
const engine = /\(?node:|\/node_modules\/|\/dist\/(?:services|shared|schemas)\/[\w/.-]+\.js/;

/** Returns the whole stack if none of its frames is the user's: that says more than no frames. */
export function userFrames(stack: string): string {
  const lines = stack.split("\n");
  const isFrame = (line: string) => /^\s+at /.test(line);
  const own = lines.filter((line) => !(isFrame(line) && engine.test(line)));
  return own.some(isFrame) ? own.join("\n") : stack;
}
