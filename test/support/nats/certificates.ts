/** Certificates for tests: an authority, and one signed by it for each name, for this machine's addresses. */
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Answers the path of `ca.pem`, `<name>.pem` and `<name>.key`. */
export function makeCertificates(...names: string[]): (file: string) => string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-tls-"));
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const authority = ["-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
  openssl("req", "-x509", ...key, ...authority);
  for (const name of names) {
    const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
    openssl("req", ...key, ...subject, "-keyout", `${name}.key`, "-out", `${name}.csr`);
    const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"];
    openssl("x509", "-req", "-in", `${name}.csr`, ...signed, "-days", "2", "-out", `${name}.pem`);
  }
  return (file) => join(folder, file);
}
