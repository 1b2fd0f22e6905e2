/**
 * A private value attached to an object that other code owns: does what a WeakMap does, without its cost.
 * Collecting garbage with a WeakMap of some thousand promises took a third of a replay.
 */
interface PrivateSlot<T> {
  get(object: object): T | undefined;
  set(object: object, value: T): void;
}

export function privateSlot<T>(): PrivateSlot<T> {
  /** A constructor that returns its argument: the fields of the class below are added to that object. */
  const Given = function (this: unknown, object: object) {
    return object;
  } as unknown as new (
    object: object,
  ) => object;
  class Slot extends Given {
    #value: T;

    constructor(object: object, value: T) {
      super(object);
      this.#value = value;
    }

    static get(object: object): T | undefined {
      return #value in object ? object.#value : undefined;
    }

    static set(object: object, value: T): void {
      if (#value in object) object.#value = value;
      else new Slot(object, value);
    }
  }
  return Slot;
}
