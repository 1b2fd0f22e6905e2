/** What a caller may do: a role, and the right to see users' values, which no role contains by itself. */

export const roles = ["viewer", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

const isRole = (value: unknown): value is Role => roles.some((role) => role === value);
export const roleAllows = (has: Role, needs: Role): boolean => roles.indexOf(has) >= roles.indexOf(needs);

/** From which role on callers see users' values; `granted`: only those who have `+payloads`. */
export const payloadReaders = [...roles, "granted"] as const;
export type PayloadReaders = (typeof payloadReaders)[number];

export interface Grant {
  role: Role;
  /** True: sees users' values whatever the role. */
  payloads: boolean;
}

/** `viewer`, or `viewer+payloads`. */
export function parseGrant(text: string): Grant | undefined {
  const [, role, payloads] = /^([a-z]+)(\+payloads)?$/.exec(text) ?? [];
  return isRole(role) ? { role, payloads: payloads !== undefined } : undefined;
}

export const seesPayloads = ({ role, payloads }: Grant, readers: PayloadReaders): boolean =>
  payloads || (readers !== "granted" && roleAllows(role, readers));

/** What a narrowed API token may be used for. */
export interface TokenScope {
  /** Operations by their id in the OpenAPI file; absent: all that the role allows. */
  operations?: readonly string[] | undefined;
  /** Orchestrations whose instances it may reach; absent: everything of the installation. */
  orchestrations?: readonly string[] | undefined;
}

export interface Identity extends Grant {
  /** The name in the audit: the token's, or the person's. */
  name: string;
  scope?: TokenScope | undefined;
}
