/**
 * The gateway's cookies. Behind https their names begin with `__Host-`: a browser then takes them only over
 * https, only for this host and from no subdomain.
 */
interface CookieOptions {
  https: boolean;
  maxAgeSeconds: number;
  /** `Lax` for what must come along when another site sends the browser back here. */
  sameSite?: "Strict" | "Lax";
}

export const loginCookie = "holdfast";
export const oidcCookie = "holdfast-oidc";

export const cookieName = (name: string, https: boolean): string => (https ? `__Host-${name}` : name);

export function setCookie(name: string, value: string, options: CookieOptions): string {
  const { https, maxAgeSeconds, sameSite = "Strict" } = options;
  return [
    `${cookieName(name, https)}=${value}`,
    "Path=/",
    "HttpOnly",
    ...(https ? ["Secure"] : []),
    `SameSite=${sameSite}`,
    `Max-Age=${maxAgeSeconds}`,
  ].join("; ");
}
