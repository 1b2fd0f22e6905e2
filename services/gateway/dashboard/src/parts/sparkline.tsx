/** A few numbers over time: stacked columns, and a line to compare them with. */
interface Series {
  key: string;
  values: readonly number[];
}

const height = 56;

export function Columns(props: {
  label: string;
  series: readonly Series[];
  line?: Series;
  /** Text shown when the pointer is over a moment. */
  titles?: readonly string[];
}) {
  const { label, series, line, titles } = props;
  const length = Math.max(...series.map((one) => one.values.length), 1);
  const totals = Array.from({ length }, (_, index) =>
    series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0),
  );
  const most = Math.max(...totals, ...(line?.values ?? []), 1);
  const width = 100 / length;
  const tall = (value: number) => (value / most) * (height - 2);
  const points = line?.values.map((value, index) => `${(index + 0.5) * width},${height - tall(value)}`);
  return (
    <div class="columns-box">
      <span class="columns-most muted" aria-hidden="true">
        {most} in 5 s
      </span>
      <svg
        class="columns"
        viewBox={`0 0 100 ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {totals.map((_, index) => {
          let below = 0;
          return series.map((one) => {
            const value = one.values[index] ?? 0;
            below += tall(value);
            return value === 0 ? null : (
              <rect
                key={`${one.key}-${index}`}
                class={`series-${one.key}`}
                x={index * width + width * 0.1}
                y={height - below}
                width={width * 0.8}
                height={tall(value)}
              />
            );
          });
        })}
        {line && points && <polyline class={`line-${line.key}`} points={points.join(" ")} />}
        {titles?.map((title, index) => (
          <rect key={index} class="hover" x={index * width} y={0} width={width} height={height}>
            <title>{title}</title>
          </rect>
        ))}
      </svg>
    </div>
  );
}
