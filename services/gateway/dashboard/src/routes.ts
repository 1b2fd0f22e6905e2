/** Every address of the dashboard. Pure: the browser tests go through this list. */
export const routes = [
  { pattern: "/", title: "Overview" },
  { pattern: "/orchestrations", title: "Orchestrations" },
  { pattern: "/orchestrations/:id", title: "Orchestration" },
  { pattern: "/sessions", title: "Sessions" },
  { pattern: "/sessions/:id", title: "Session" },
  { pattern: "/workers", title: "Workers" },
  { pattern: "/workers/:id", title: "Worker" },
  { pattern: "/schedules", title: "Schedules" },
  { pattern: "/schedules/:id", title: "Schedule" },
  { pattern: "/limits", title: "Limits" },
  { pattern: "/queues", title: "Queues" },
  { pattern: "/start", title: "Start" },
  { pattern: "/import", title: "Import" },
] as const;

export type Pattern = (typeof routes)[number]["pattern"];

export interface Found {
  pattern: Pattern;
  params: Record<string, string>;
  /** Title of the browser's tab. It begins with the words in which tabs differ. */
  title: string;
}

/** Undefined where nothing is. */
export function routeOf(path: string): Found | undefined {
  for (const { pattern, title } of routes) {
    const params = match(pattern, path);
    if (params) return { pattern, params, title: tabTitle(params.id, title) };
  }
  return undefined;
}

export const tabTitle = (...parts: readonly (string | undefined)[]): string =>
  [...parts.filter((part) => part !== undefined && part !== "Overview"), "Holdfast"].join(" · ");

/** `/sessions/:id` → `{id}`; undefined if the path does not match. */
function match(pattern: string, at: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = at.replace(/\/+$/, "").split("/");
  if (given.length === 1) given.push("");
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) {
      const decoded = decode(value);
      if (decoded === undefined) return undefined;
      params[part.slice(1)] = decoded;
    } else if (part !== value) return undefined;
  }
  return params;
}

function decode(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined; // A lone % in an address that somebody typed.
  }
}
