/** A real OpenID Connect provider on a free port of this machine, with people of our choice. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface TestProvider extends AsyncDisposable {
  readonly issuer: string;
  /** What the provider tells of a person; may be changed. */
  readonly people: Map<string, Record<string, unknown>>;
  /** As a person would in a browser: follows the log-in to the end. Answers where the browser is sent back to. */
  logIn(address: string, person: string): Promise<string>;
}

export async function startProvider(client: {
  id: string;
  secret: string;
  redirectUri: string;
}): Promise<TestProvider> {
  const people = new Map<string, Record<string, unknown>>();
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [client.redirectUri] }],
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    scopes: ["openid", "profile", "groups"],
    features: { devInteractions: { enabled: true } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    cookies: { keys: ["only for tests"] },
  });
  const handle = provider.callback();
  return {
    issuer,
    people,
    logIn: (address, person) => follow(address, person, issuer),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A browser as far as the provider's pages need one: cookies, redirects, and two forms. */
async function follow(address: string, person: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next = { url: address, form: undefined as URLSearchParams | undefined };
  for (let step = 0; step < 20; step++) {
    const response = await fetch(next.url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(next.form && { method: "POST", body: next.form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const to = response.headers.get("location");
    if (to !== null) {
      const url = new URL(to, next.url).href;
      if (!url.startsWith(issuer)) return url;
      next = { url, form: undefined };
      continue;
    }
    const page = await response.text();
    const action = /<form[^>]+action="([^"]+)"/.exec(page)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
    if (action === undefined || prompt === undefined) throw new Error(`no form on ${next.url}: ${page}`);
    next = {
      url: new URL(action, next.url).href,
      form: new URLSearchParams({ prompt, ...(prompt === "login" && { login: person, password: "any" }) }),
    };
  }
  throw new Error("the log-in did not end");
}
