import { z } from "zod";

/**
 * An object on the wire (E1). Fields it does not name are kept as they came, so that a process which passes
 * the object on or stores it again loses nothing a newer version wrote. In the type they do not exist: what
 * we write is checked strictly.
 */
export const wireObject = <S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strip> =>
  z.looseObject(shape);

/** The fields of an entry that its schema does not name: a process that writes the entry anew keeps them. */
export function unknownFields(schema: z.ZodObject, value: object | undefined): Record<string, unknown> {
  if (!value) return {};
  return Object.fromEntries(Object.entries(value).filter(([name]) => !(name in schema.shape)));
}
