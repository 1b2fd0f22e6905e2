/** The user's own frames of a stack, without those of the engine and of Node. Pure. */
const engine =
  /node:internal|\bnode:|\/node_modules\/holdfast\/|\/(?:services\/(?:orchestrator|worker|watcher|gateway|cli)|shared\/(?:replay|errors|runtime|definitions|bus|sdk|sessions|app-loading))\/[\w/.-]+\.[jt]s/;

export function userFrames(stack: string): string {
  const lines = stack.split("\n").filter((line) => !(/^\s+at /.test(line) && engine.test(line)));
  return lines.join("\n");
}
