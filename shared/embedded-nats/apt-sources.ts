/**
 * Rewrites the machine's own apt source files to name a newer suite. Mirrors, keyrings and proxies stay those
 * the machine already trusts. Pure: writes nothing.
 */

export interface SourceFile {
  name: string;
  text: string;
}

/** The rolling suite of each distribution that has one under a fixed name. */
const newerSuites: Readonly<Record<string, string>> = { debian: "testing", ubuntu: "devel" };

interface Distribution {
  /** Suites this machine's base system may be listed under, e.g. `bookworm` or `stable`. */
  ownSuites: ReadonlySet<string>;
  /** The suite this machine runs; undefined if /etc/os-release does not say. */
  codename: string | undefined;
  newerSuite: string;
}

/** Reads /etc/os-release. A derivative is named by ID_LIKE and uses the archive of its parent. */
export function distributionOf(osRelease: string): Distribution | undefined {
  const fields = new Map<string, string>();
  for (const line of osRelease.split("\n")) {
    const match = /^([A-Z_]+)=["']?(.*?)["']?\s*$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) fields.set(match[1], match[2]);
  }
  const families = [fields.get("ID") ?? "", ...(fields.get("ID_LIKE") ?? "").split(/\s+/)];
  const newerSuite = families.map((family) => newerSuites[family]).find((suite) => suite !== undefined);
  if (newerSuite === undefined) return undefined;
  const codenames = ["VERSION_CODENAME", "UBUNTU_CODENAME", "DEBIAN_CODENAME"].flatMap(
    (key) => fields.get(key) ?? [],
  );
  const aliases = ["oldstable", "stable", "testing", "unstable", "sid", "devel"];
  return { ownSuites: new Set([...codenames, ...aliases]), codename: codenames[0], newerSuite };
}

/**
 * Reads both formats, distinguished by file name as apt does. Takes only the base archive: its suite is the
 * machine's own and it has `main`. Security, updates and third-party archives have no newer suite of that
 * name.
 */
export function newerSources(
  files: readonly SourceFile[],
  distribution: Pick<Distribution, "ownSuites" | "newerSuite">,
): SourceFile[] {
  const stanzas: string[] = [];
  const lines: string[] = [];
  for (const file of files) {
    if (file.name.endsWith(".sources")) stanzas.push(...newerStanzas(file.text, distribution));
    else if (file.name.endsWith(".list")) lines.push(...newerLines(file.text, distribution));
  }
  const result: SourceFile[] = [];
  if (stanzas.length > 0) result.push({ name: "newer.sources", text: `${unique(stanzas).join("\n\n")}\n` });
  if (lines.length > 0) result.push({ name: "newer.list", text: `${unique(lines).join("\n")}\n` });
  return result;
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** deb822: fields may continue on indented lines (an inline key in Signed-By), which are kept unchanged. */
function newerStanzas(
  text: string,
  { ownSuites, newerSuite }: Pick<Distribution, "ownSuites" | "newerSuite">,
): string[] {
  const withoutComments = text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n");
  return withoutComments.split(/\n[ \t]*\n/).flatMap((stanza) => {
    const fields = stanza.split(/\n(?=\S)/).flatMap((field) => {
      const match = /^([A-Za-z-]+):\s*([\s\S]*?)\s*$/.exec(field.trimStart());
      return match ? [{ key: match[1] ?? "", value: match[2] ?? "" }] : [];
    });
    const words = (key: string): string[] =>
      fields.find((field) => field.key.toLowerCase() === key)?.value.split(/\s+/) ?? [];
    const disabled = words("enabled").some((word) => /^(no|false|off|0|disable|without)$/i.test(word));
    const isBase =
      words("types").includes("deb") &&
      words("suites").some((suite) => ownSuites.has(suite)) &&
      words("components").includes("main");
    if (disabled || !isBase) return [];
    const kept = fields.map(({ key, value }) => {
      switch (key.toLowerCase()) {
        case "types":
          return `${key}: deb`;
        case "suites":
          return `${key}: ${newerSuite}`;
        default:
          return `${key}: ${value}`;
      }
    });
    return [kept.join("\n")];
  });
}

/** `deb [options] uri suite component…` */
function newerLines(
  text: string,
  { ownSuites, newerSuite }: Pick<Distribution, "ownSuites" | "newerSuite">,
): string[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line);
    if (!match) return [];
    const [, options = "", uri = "", suite = "", rest = ""] = match;
    const components = rest.trim().split(/\s+/);
    if (!ownSuites.has(suite) || !components.includes("main")) return [];
    return [`deb ${options}${uri} ${newerSuite} ${components.join(" ")}`];
  });
}
