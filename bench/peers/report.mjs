/** The results of a comparison as a Markdown table and as a plot. */
import { shapes } from "./shapes.mjs";

/** The columns in their order; engines that were not run are left out. */
const known = [
  "holdfast-shared",
  "holdfast-per-instance",
  "holdfast-always-shared",
  "holdfast-always",
  "restate",
  "dbos",
  "bullmq",
  "bullmq-aof-always",
];
const titles = {
  "holdfast-always-shared": "Holdfast, shared",
  "holdfast-always": "Holdfast, per instance",
  "bullmq-aof-always": "BullMQ",
  "holdfast-shared": "Holdfast, shared",
  "holdfast-per-instance": "Holdfast, per instance",
  restate: "Restate",
  dbos: "DBOS",
  bullmq: "BullMQ",
};

const columnsOf = (lines) => known.filter((column) => lines.some(({ peer }) => peer === column));

/** All repetitions of one peer's form, smallest first. */
function valuesOf(lines, { workload, forms, figure }, column) {
  const form = forms[column.split("-")[0]];
  return lines
    .filter((line) => line.peer === column && line.workload === workload && line.form === form)
    .flatMap((line) => (typeof line[figure] === "number" ? [line[figure]] : []))
    .sort((a, b) => a - b);
}

const short = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en").replace(",", " ") : value.toPrecision(2);
const median = (values) => values[Math.floor(values.length / 2)];

export function table(lines) {
  const columns = columnsOf(lines);
  const cell = (values, unit) => {
    if (values.length === 0) return "–";
    const [from, to] = [values[0], values.at(-1)].map(short);
    return `${from === to ? from : `${from}–${to}`} ${unit}`.replace(" /s", "/s");
  };
  const rows = shapes.map((shape) => {
    const cells = columns.map((column) => cell(valuesOf(lines, shape, column), shape.unit));
    return `| ${shape.workload} ${shape.what} | ${cells.join(" | ")} |`;
  });
  const versions = [
    ...new Map(lines.map(({ peer, version, durability }) => [peer, `${version}: ${durability}`])),
  ];
  return [
    `| | ${columns.map((column) => titles[column]).join(" | ")} |`,
    `|---|${columns.map(() => "---|").join("")}`,
    ...rows,
    "",
    ...versions.map(([peer, text]) => `- ${titles[peer] ?? peer}: ${text}`),
    "",
  ].join("\n");
}

const colours = ["#0f766e", "#5eead4", "#7c3aed", "#2563eb", "#dc2626"];

/** Bars by medians, each shape to its own scale: the best is full where more is better, the worst where less is. */
export function plot(lines) {
  const columns = columnsOf(lines);
  const [width, label, bar, gap] = [860, 150, 14, 34];
  let y = 40;
  const parts = [];
  const text = (x, at, text, more = "") =>
    parts.push(`<text x="${x}" y="${at}" ${more}>${escaped(text)}</text>`);
  text(10, 22, "Holdfast beside others, medians of one run", 'font-size="15" font-weight="600"');
  for (const shape of shapes) {
    const bars = columns.flatMap((column, index) => {
      const values = valuesOf(lines, shape, column);
      return values.length === 0 ? [] : [{ column, index, value: median(values) }];
    });
    if (bars.length < 2) continue;
    y += 20;
    text(10, y, `${shape.workload} ${shape.what} (${shape.better} is better)`, 'font-weight="600"');
    const most = Math.max(...bars.map(({ value }) => value));
    for (const { column, index, value } of bars) {
      y += bar + 4;
      const length = Math.max(2, (value / most) * (width - label - 120));
      text(10, y, titles[column]);
      parts.push(
        `<rect x="${label}" y="${y - bar + 3}" width="${length.toFixed(1)}" height="${bar}" fill="${colours[index]}"/>`,
      );
      text(label + length + 6, y, `${short(value)} ${shape.unit}`.replace(" /s", "/s"));
    }
    y += gap - 20;
  }
  const style = 'font-family="system-ui, sans-serif" font-size="12" fill="#374151"';
  const box = `xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 10}" width="${width}" height="${y + 10}"`;
  const back = `<title>Holdfast beside Restate, DBOS and BullMQ</title><rect width="${width}" height="${y + 10}" fill="#ffffff"/>`;
  return `<svg ${box} ${style}>${back}\n${parts.join("\n")}\n</svg>\n`;
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
