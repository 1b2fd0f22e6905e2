import { describe, expect, it } from "vitest";
import { distributionOf, newerSources } from "../../shared/embedded-nats/apt-sources.ts";

const debian = distributionOf('ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian 12"\n');
const ubuntu = distributionOf("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n");

function newer(name: string, text: string, distribution = debian): string | undefined {
  if (!distribution) throw new Error("unknown distribution");
  return newerSources([{ name, text }], distribution)[0]?.text;
}

describe("the distribution", () => {
  it("is known for Debian, Ubuntu and derivatives, which follow their parent", () => {
    expect(debian?.newerSuite).toBe("testing");
    expect(ubuntu?.newerSuite).toBe("devel");
    expect(distributionOf('ID=linuxmint\nID_LIKE="ubuntu debian"\n')?.newerSuite).toBe("devel");
    expect(distributionOf("ID=alpine\n")).toBeUndefined();
    expect(distributionOf("")).toBeUndefined();
  });
});

describe("deb822 sources", () => {
  it("keep mirror and key, take the newer suite, leave comments out", () => {
    const text = `Types: deb deb-src
# http://snapshot.example/
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/a.gpg
`;
    expect(newer("debian.sources", text)).toBe(`Types: deb
URIs: http://mirror.example/debian
Suites: testing
Components: main contrib
Signed-By: /usr/share/keyrings/a.gpg
`);
  });

  it("leave out security, third-party and disabled stanzas", () => {
    const stanza = (suites: string, components: string, more = "") =>
      `Types: deb\nURIs: http://mirror.example/x\nSuites: ${suites}\nComponents: ${components}\n${more}`;
    expect(newer("a.sources", stanza("bookworm-security", "main"))).toBeUndefined();
    expect(newer("a.sources", stanza("bookworm", "stable"))).toBeUndefined();
    expect(newer("a.sources", stanza("bookworm", "main", "Enabled: no\n"))).toBeUndefined();
    const two = `${stanza("bookworm", "main")}\n${stanza("bookworm-security", "main")}`;
    expect(newer("a.sources", two)?.match(/Suites: .*/g)).toEqual(["Suites: testing"]);
  });

  it("keep an inline key whole", () => {
    const key = " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc=\n -----END PGP PUBLIC KEY BLOCK-----";
    const text = `Types: deb\nURIs: http://m.example/d\nSuites: stable\nComponents: main\nSigned-By:\n${key}\n`;
    expect(newer("a.sources", text)).toContain(key);
  });
});

describe("classic sources", () => {
  it("keep options, mirror and components", () => {
    const text = `# a comment
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/ubuntu noble main universe # end
deb-src http://mirror.example/ubuntu noble main
deb http://mirror.example/ubuntu noble-updates main universe
deb http://security.example/ubuntu noble-security main
deb https://other.example/apt noble stable
#deb http://off.example/ubuntu noble main
`;
    expect(newer("/etc/apt/sources.list", text, ubuntu)).toBe(
      "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/ubuntu devel main universe\n",
    );
  });

  it("ignores files apt ignores", () => {
    expect(newer("a.list.disabled", "deb http://mirror.example/debian bookworm main")).toBeUndefined();
  });
});
