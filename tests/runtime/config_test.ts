import { OperatorError } from "../../base/operator_error.ts";
import { type Environment, type FlagValues, parseServerConfig } from "../../runtime/config.ts";
import { withSecretFiles } from "../../runtime/secret_env.ts";
import { SETTINGS } from "../../runtime/settings.ts";
import { expect } from "../helpers/expect.ts";

const CWD = "/srv/here";

function refusal(flags: FlagValues, env: Environment = {}): OperatorError {
  try {
    parseServerConfig(flags, env, CWD);
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error(`Expected a refusal of ${JSON.stringify({ flags, env })}`);
}

Deno.test("parseServerConfig() gives the documented defaults when nothing is said", () => {
  expect(parseServerConfig({}, {}, CWD)).toEqual({
    host: "127.0.0.1",
    port: 3923,
    dataFolder: "/srv/here/string-data",
    shared: false,
    maxBytes: 5 * 2 ** 30,
    diskReserveBytes: 256 * 2 ** 20,
    allowedHosts: [],
    trustedHops: 0,
    trustLoopback: "auto",
    homes: [],
    corsOrigins: [],
    role: "dev",
    label: "string",
    logLevel: "info",
    maxTtlMs: 31_622_400_000,
    containment: "auto",
    idleTimeoutMs: 60_000,
    graceMs: 10_000,
  });
});

Deno.test("parseServerConfig() reads every setting from its flag", () => {
  const rows: [FlagValues, Record<string, unknown>][] = [
    [{ host: "0.0.0.0" }, { host: "0.0.0.0" }],
    [{ host: "[::1]" }, { host: "::1" }],
    [{ host: "::" }, { host: "::" }],
    [{ host: "LocalHost" }, { host: "localhost" }],
    [{ port: "0" }, { port: 0 }],
    [{ port: "65535" }, { port: 65535 }],
    [{ data: "x/../y" }, { dataFolder: "/srv/here/y" }],
    [{ data: "/abs" }, { dataFolder: "/abs" }],
    [{ shared: true }, { shared: true }],
    [{ db: "libsql://db.example.org" }, { dbUrl: "libsql://db.example.org", shared: true }],
    [{ db: "http://127.0.0.1:8080" }, { dbUrl: "http://127.0.0.1:8080", shared: true }],
    [{ maxBytes: "10MB" }, { maxBytes: 10_000_000 }],
    [{ diskReserve: "0" }, { diskReserveBytes: 0 }],
    [{ publicUrl: "https://a.example.org/" }, { publicUrl: "https://a.example.org" }],
    [{ publicUrl: "https://A.example.org:443/x//" }, { publicUrl: "https://a.example.org/x" }],
    [{ allowedHost: ["A.example.org", "a.example.org", "[::1]"] }, {
      allowedHosts: ["a.example.org", "[::1]"],
    }],
    [{ trustedHops: "2" }, { trustedHops: 2 }],
    [{ trustLoopback: "false" }, { trustLoopback: false }],
    [{ trustLoopback: "true" }, { trustLoopback: true }],
    [{ homes: ["h", "/home"] }, { homes: ["/srv/here/h", "/home"] }],
    [{ corsOrigin: ["https://app.example.org"] }, { corsOrigins: ["https://app.example.org"] }],
    [{ role: "production" }, { role: "production" }],
    [{ label: "Büro 2" }, { label: "Büro 2" }],
    [{ logLevel: "silent" }, { logLevel: "silent" }],
  ];
  for (const [flags, expected] of rows) {
    expect(parseServerConfig(flags, {}, CWD), JSON.stringify(flags)).toMatchObject(expected);
  }
});

Deno.test("parseServerConfig() takes the flag over the environment over the default", () => {
  const env = {
    STRING_PORT: "1",
    STRING_SHARED: "true",
    STRING_ALLOWED_HOST: "a.example, b.example",
    STRING_CONTAINMENT: "portable",
    STRING_MAX_TTL: "1h",
    STRING_IDLE_TIMEOUT: "2s",
    STRING_GRACE: "300ms",
    STRING_ROLE: "",
    STRING_DB_TOKEN: "t",
  };
  const config = parseServerConfig({ port: "2", allowedHost: ["c.example"] }, env, CWD);
  expect(config).toMatchObject({
    port: 2,
    shared: true,
    allowedHosts: ["c.example"],
    role: "dev",
    dbToken: "t",
  });
  expect(config).toMatchObject({
    containment: "portable",
    maxTtlMs: 3_600_000,
    idleTimeoutMs: 2000,
    graceMs: 300,
  });
  expect(parseServerConfig({}, env, CWD)).toMatchObject({
    port: 1,
    allowedHosts: ["a.example", "b.example"],
  });
  expect(parseServerConfig({}, { ...env, STRING_SHARED: "0" }, CWD).shared).toBe(false);
});

Deno.test("parseServerConfig() refuses what is not allowed and names flag, value and what is", () => {
  const rows: [FlagValues, ...string[]][] = [
    [{ port: "65536" }, "--port", '"65536"', "from 0 to 65535"],
    [{ port: "-1" }, "--port"],
    [{ port: "80x" }, "--port"],
    [{ port: "" }, "--port"],
    [{ host: "http://x" }, "--host", "without scheme"],
    [{ host: "a b" }, "--host"],
    [{ host: "127.0.0.1:80" }, "--host"],
    [{ data: "" }, "--data"],
    [{ maxBytes: "0" }, "--max-bytes", "at least 1"],
    [{ maxBytes: "5G" }, "--max-bytes", '"5G"', "GiB"],
    [{ diskReserve: "-1" }, "--disk-reserve"],
    [{ publicUrl: "ftp://x" }, "--public-url", "http or https"],
    [{ publicUrl: "https:x" }, "--public-url"],
    [{ publicUrl: "https://x/?a" }, "--public-url", "query"],
    [{ publicUrl: "https://x/#a" }, "--public-url"],
    [{ allowedHost: ["x:80"] }, "--allowed-host", '"x:80"', "port"],
    [{ allowedHost: ["https://x"] }, "--allowed-host"],
    [{ allowedHost: ["*"] }, "--allowed-host"],
    [{ trustedHops: "-1" }, "--trusted-hops"],
    [{ trustedHops: "1.5" }, "--trusted-hops", '"1.5"'],
    [{ trustLoopback: "maybe" }, "--trust-loopback", "auto, true, false"],
    [{ trustLoopback: "constructor" }, "--trust-loopback"],
    [{ corsOrigin: ["*"] }, "--cors-origin", "one exact origin"],
    [{ corsOrigin: ["https://x/"] }, "--cors-origin"],
    [{ corsOrigin: ["null"] }, "--cors-origin"],
    [{ corsOrigin: ["https://*.x"] }, "--cors-origin"],
    [{ role: "prod" }, "--role", '"prod"', "dev, test, production"],
    [{ label: "a\nb" }, "--label"],
    [{ logLevel: "loud" }, "--log-level", "silent"],
    [{ db: "file:x.db" }, "--db", "leave it out"],
    [{ db: "postgres://x" }, "--db"],
  ];
  for (const [flags, ...parts] of rows) {
    const error = refusal(flags);
    expect(error.kind).toBe("usage");
    for (const part of parts) expect(error.message).toContain(part);
  }
  expect(refusal({}, { STRING_PORT: "x" }).message).toContain("STRING_PORT");
  expect(refusal({}, { STRING_GRACE: "0s" }).message).toContain("STRING_GRACE");
  expect(refusal({}, { STRING_IDLE_TIMEOUT: "60" }).message).toContain("90s");
});

Deno.test("parseServerConfig() refuses secrets in addresses and never repeats them", () => {
  const rows: FlagValues[] = [
    { db: "libsql://user:hunter2@x" },
    { db: "libsql://x?authToken=hunter2" },
    { db: "https://x?AUTHTOKEN=hunter2" },
    { db: "postgres://user:hunter2@x" },
    { publicUrl: "https://user:hunter2@x" },
    { publicUrl: "https://x/?token=hunter2" },
    { publicUrl: "ftp://user:hunter2@x" },
  ];
  for (const flags of rows) {
    const error = refusal(flags);
    expect(`${error.message} ${error.hint}`, JSON.stringify(flags)).not.toContain("hunter2");
  }
  expect(refusal({ db: "libsql://x?authToken=hunter2" }).message).toContain("STRING_DB_TOKEN");
});

Deno.test("SETTINGS names each variable after its flag", () => {
  for (const [key, setting] of Object.entries(SETTINGS)) {
    if (!("flag" in setting)) continue;
    expect(setting.env).toBe("STRING_" + setting.flag.replaceAll("-", "_").toUpperCase());
    expect(key).toBe(setting.flag.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()));
  }
});

Deno.test("withSecretFiles() reads a secret from the file that its variable names", async () => {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "  tok\n");
    const names = ["STRING_DB_TOKEN"];
    expect((await withSecretFiles({ STRING_DB_TOKEN_FILE: file }, names))["STRING_DB_TOKEN"]).toBe("tok");
    const both = withSecretFiles({ STRING_DB_TOKEN_FILE: file, STRING_DB_TOKEN: "x" }, names);
    await expect(both).rejects.toThrow("together");
    await expect(withSecretFiles({ STRING_DB_TOKEN_FILE: file + "-no" }, names)).rejects.toThrow(
      "Cannot read",
    );
    await Deno.writeTextFile(file, "\n");
    await expect(withSecretFiles({ STRING_DB_TOKEN_FILE: file }, names)).rejects.toThrow("empty");
  } finally {
    await Deno.remove(file);
  }
});
