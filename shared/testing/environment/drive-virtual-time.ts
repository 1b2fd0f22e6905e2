/** Awaits the work and lets virtual time pass meanwhile. */

type Drive = <T>(work: Promise<T>) => Promise<T>;

type Method = (...args: unknown[]) => unknown;

/**
 * Wraps every method that returns a promise or an iterable so that awaiting it drives time; also those of
 * handles it returns.
 */
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
  if (result instanceof Promise) return drive(result.then((value) => drivenUpdate(value, drive)));
  if (isGenerator(result)) return drivenGenerator(result, drive);
  if (isCallable(result)) return drivenCalls(result, drive);
  if (isCallStream(result)) return drivenStream(result, drive);
  return result;
}

/** The handle of an update that was accepted waits for its answer by itself. */
function drivenUpdate<T>(value: T, drive: Drive): T {
  if (typeof value !== "object" || value === null || !("updateId" in value) || !("result" in value))
    return value;
  const { result } = value;
  if (typeof result !== "function") return value;
  const method = result as (...args: unknown[]) => Promise<unknown>;
  return { ...value, result: (...args: unknown[]) => drive(method(...args)) };
}

/** True for the session of a key or a pool, whose methods are on the object and on its class. */
const isCallable = (value: unknown): value is Record<string, unknown> & { call: Method } =>
  typeof value === "object" && value !== null && "call" in value && typeof value.call === "function";

function drivenCalls(target: Record<string, unknown>, drive: Drive): unknown {
  const methods = Object.entries(target).filter(([, value]) => typeof value === "function");
  if (Object.getPrototypeOf(target) !== Object.prototype) driven(target, drive);
  for (const [name, value] of methods)
    target[name] = (...args: unknown[]) => drivenResult(Reflect.apply(value as Method, target, args), drive);
  return target;
}

interface CallStream extends AsyncIterable<unknown> {
  readonly result: Promise<unknown>;
}

const isCallStream = (value: unknown): value is CallStream =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value && "result" in value;

const drivenStream = (stream: CallStream, drive: Drive): CallStream => ({
  get result() {
    return drive(stream.result);
  },
  [Symbol.asyncIterator]: () => {
    const chunks = stream[Symbol.asyncIterator]();
    return { next: () => drive(chunks.next()), return: async () => ({ done: true, value: undefined }) };
  },
});

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
