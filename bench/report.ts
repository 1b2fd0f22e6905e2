/** The result of a workload, as one line. */
export interface Line {
  workload: string;
  layout: string;
  [figure: string]: Figure | undefined;
}

export type Figure = string | number | boolean | Readonly<Record<string, number>>;

type Aim = { atMost: number } | { atLeast: number };

/** The ratio to the floor; with an aim also the aim and whether it is met. */
export const ratioOf = (
  of: string,
  engine: number,
  floor: number,
  aim?: Aim,
): Record<string, string | number | boolean> => ({
  ratio: engine / floor,
  ratioOf: of,
  ...(aim ? judged(engine / floor, aim) : {}),
});

export const judged = (value: number, aim: Aim): { aim: string; met: boolean } =>
  "atMost" in aim
    ? { aim: `<= ${aim.atMost}`, met: value <= aim.atMost }
    : { aim: `>= ${aim.atLeast}`, met: value >= aim.atLeast };

export const asJson = (line: Line): string =>
  JSON.stringify(line, (_key, value) => (typeof value === "number" ? rounded(value) : value));

/** Each figure beside the floor's: `p50Ms 0.61 (floor 0.47)`. */
export function asText({ workload, layout, ...figures }: Line): string {
  const shown = Object.entries(figures)
    .filter(([name, value]) => value !== undefined && !isFloorOf(name, figures))
    .map(([name, value]) => {
      const floor = figures[floorName(name)];
      return `${name} ${text(value)}${floor === undefined ? "" : ` (floor ${text(floor)})`}`;
    });
  return `${workload.padEnd(8)} ${layout.padEnd(13)} ${shown.join("  ")}`;
}

const floorName = (name: string): string => `floor${name.charAt(0).toUpperCase()}${name.slice(1)}`;

const isFloorOf = (name: string, figures: object): boolean => {
  const rest = name.slice("floor".length);
  return name.startsWith("floor") && `${rest.charAt(0).toLowerCase()}${rest.slice(1)}` in figures;
};

function text(value: Figure | undefined): string {
  if (typeof value === "number") return String(rounded(value));
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name} ${text(part)}`)
    .join(", ");
}

/** Three digits: nothing here is measured more finely than that. */
const rounded = (value: number): number =>
  Number.isInteger(value) || Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3));
