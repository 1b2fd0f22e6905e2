/** Runs `act` for every item, at most `most` at a time; the first failure ends it and is thrown. */
export async function eachAtOnce<T>(
  items: readonly T[],
  most: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await act(item);
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, lane));
}
