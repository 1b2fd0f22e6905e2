/** Whoever awaits something of this object lets virtual time pass meanwhile. */

export type Drive = <T>(work: Promise<T>) => Promise<T>;

type Method = (...args: unknown[]) => unknown;

/** Every method that returns a promise, or something to iterate, is driven; also those of handles made from it. */
export function driven<T extends object>(target: T, drive: Drive): T {
  const prototype: object = Object.getPrototypeOf(target);
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== "function" || name === "constructor") continue;
    const method: Method = (...args) => drivenResult(Reflect.apply(value, target, args), drive);
    Object.defineProperty(target, name, { value: method });
  }
  return target;
}

function drivenResult(result: unknown, drive: Drive): unknown {
  if (result instanceof Promise) return drive(result);
  if (isGenerator(result)) return drivenGenerator(result, drive);
  return result;
}

const isGenerator = (value: unknown): value is AsyncGenerator<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;

async function* drivenGenerator<T>(source: AsyncGenerator<T>, drive: Drive): AsyncGenerator<T> {
  try {
    for (;;) {
      const next = await drive(source.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await drive(source.return(undefined));
  }
}
