/** A few numbers over time as columns; the sum stands beside it in words. */
export function Columns(props: {
  label: string;
  series: { key: string; values: number[] }[];
  height?: number;
}) {
  const { label, series, height = 56 } = props;
  const length = Math.max(...series.map((line) => line.values.length), 1);
  const totals = Array.from({ length }, (_, index) =>
    series.reduce((sum, line) => sum + (line.values[index] ?? 0), 0),
  );
  const most = Math.max(...totals, 1);
  const width = 100 / length;
  return (
    <svg
      class="columns"
      viewBox={`0 0 100 ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {totals.map((_, index) => {
        let below = 0;
        return series.map((line) => {
          const value = line.values[index] ?? 0;
          const tall = (value / most) * (height - 2);
          below += tall;
          return value === 0 ? null : (
            <rect
              key={`${line.key}-${index}`}
              class={`series-${line.key}`}
              x={index * width + width * 0.1}
              y={height - below}
              width={width * 0.8}
              height={tall}
            />
          );
        });
      })}
    </svg>
  );
}
