/** Report 4: a life that cannot be read is refused when minted and dead when stored, never endless. */
import { DatabaseSync } from "node:sqlite";
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { bearer, fs, reasonOf, withServer } from "./support.ts";

/** Sends a mint whose `ttl_ms` is written exactly so. */
async function mintWith(server: TestServer, ttl: string): Promise<{ status: number; text: string }> {
  const response = await server.fetch("/capabilities", {
    method: "POST",
    headers: { ...bearer(server.adminToken), "content-type": "application/json" },
    body: `{"agent_id":"eve","path_prefix":"","verbs":["GET"]${ttl === "absent" ? "" : `,"ttl_ms":${ttl}`}}`,
  });
  return { status: response.status, text: await response.text() };
}

Deno.test("report 4: a ttl_ms that is no whole number in its bounds is 400, and nothing is minted", () =>
  withServer(async (server) => {
    await server.admin("POST", "/agents", { agent_id: "eve" });
    const { capabilities } = await (await server.fetch("/describe")).json();
    const maxTtlMs: number = capabilities["capability-tokens"].max_ttl_ms;
    expect(maxTtlMs).toBe(366 * 24 * 60 * 60 * 1000);
    const refused = [
      "NaN",
      "Infinity",
      '"NaN"',
      '"1h"',
      '"60000"',
      "null",
      "-1",
      "0",
      "-0",
      "1e400",
      "-1e400",
      "9e15",
      "1.5",
      "1e-9",
      "true",
      "[60000]",
      "{}",
      "absent",
      String(maxTtlMs + 1),
      "9007199254740993",
    ]; // deno-fmt-ignore
    for (const ttl of refused) {
      const { status, text } = await mintWith(server, ttl);
      expect([ttl, status, reasonOf(text)]).toEqual([ttl, 400, "invalid_request"]);
      expect(text).not.toContain("caps_");
      // What is no JSON at all cannot be told which field it is.
      if (!/^(NaN|Infinity)$/.test(ttl)) expect(text).toContain("ttl_ms");
    }
    expect((await server.admin("GET", "/capabilities")).body.capabilities).toEqual([]);
    for (const ttl of ["1", "1.0", "6e4", String(maxTtlMs)]) {
      expect([ttl, (await mintWith(server, ttl)).status]).toEqual([ttl, 201]);
    }
  }));

Deno.test("report 4: the upper limit is the one that the operator chose", () =>
  withServer(async (server) => {
    await server.admin("POST", "/agents", { agent_id: "eve" });
    const { capabilities } = await (await server.fetch("/describe")).json();
    expect(capabilities["capability-tokens"].max_ttl_ms).toBe(3_600_000);
    expect((await mintWith(server, "3600000")).status).toBe(201);
    expect((await mintWith(server, "3600001")).status).toBe(400);
  }, { env: { STRING_MAX_TTL: "1h" } }));

/** Rewrites the table so that it takes any value in any column, as an older or a broken program may have left it. */
function loosen(database: DatabaseSync): void {
  const { sql } = database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'capabilities'").get() as {
    sql: string;
  };
  const loose = sql.replace(/\)\s*STRICT\s*$/, ")").replaceAll(/ NOT NULL|CHECK \([^)]*\)\)/g, "");
  database.exec("ALTER TABLE capabilities RENAME TO strict_capabilities");
  database.exec(loose.replace(/expires_at INTEGER/, "expires_at"));
  database.exec("INSERT INTO capabilities SELECT * FROM strict_capabilities");
  database.exec("DROP TABLE strict_capabilities");
}

const GARBAGE: Record<string, string> = {
  "a word": "'never'",
  "an empty text": "''",
  "a date": "'2999-01-01T00:00:00Z'",
  "a great number as text": "'99999999999999'",
  "Infinity as text": "'Infinity'",
  "nothing": "NULL",
  "infinity": "9e999",
  "a number past all dates": "1e300",
  "a fraction": "99999999999999.5",
  "a blob": "x'ffffffffffffffff'",
};

Deno.test("report 4: a stored expiry that cannot be read is dead for every verb, also after a restart", async () => {
  const dataFolder = await Deno.makeTempDir({ prefix: "string-test-" });
  const secrets: Record<string, string> = {};
  {
    const server = await startServer({ dataFolder });
    for (const [index, name] of Object.keys(GARBAGE).entries()) {
      const minted = await server.mint({ single_use: index % 2 === 0 });
      secrets[name] = minted.secret;
      secrets[minted.token_id] = name;
    }
    const untouched = await server.mint({});
    secrets.untouched = untouched.secret;
    await Deno.writeTextFile(join(server.home("eve"), "a.txt"), "kept");
    await server.stop();
  }
  const database = new DatabaseSync(join(dataFolder, "string.db"));
  loosen(database);
  for (const [tokenId, name] of Object.entries(secrets)) {
    if (tokenId.startsWith("cap_")) {
      database.exec(`UPDATE capabilities SET expires_at = ${GARBAGE[name]} WHERE token_id = '${tokenId}'`);
    }
  }
  database.close();

  await using server = await startServer({ dataFolder });
  const alive = await fs(server, "GET", "a.txt", secrets.untouched ?? "");
  expect([alive.status, alive.text]).toEqual([200, "kept"]);
  for (const name of Object.keys(GARBAGE)) {
    for (const method of ["GET", "PUT", "DELETE"]) {
      const answer = await fs(
        server,
        method,
        "a.txt",
        secrets[name] ?? "",
        method === "PUT" ? { body: "x" } : {},
      );
      expect([name, method, answer.status, answer.reason]).toEqual([name, method, 401, "expired"]);
    }
    expect((await fs(server, "HEAD", "a.txt", secrets[name] ?? "")).status).toBe(401);
  }
  const { body } = await server.admin("GET", "/capabilities");
  const records = body.capabilities as { token_id: string; status: string }[];
  const stillListed = records.filter(({ token_id: id }) => secrets[id] !== undefined);
  for (const { token_id: id, status } of stillListed) {
    expect([secrets[id], status]).toEqual([secrets[id], "expired"]);
    expect((await server.admin("DELETE", `/capabilities/${id}`)).body.revoked).toBe(false);
  }
  expect(await Deno.readTextFile(join(server.home("eve"), "a.txt"))).toBe("kept");
});
