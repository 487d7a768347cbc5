/** Mint, list, revoke (SYS-CAP). */
import { hashSecret } from "../../caps/secret.ts";
import { expect } from "../helpers/expect.ts";
import { type Row, testRows, type World } from "./rows.ts";

const DAY_MS = 86_400_000;
const grant = { path_prefix: "in", verbs: ["PUT"], ttl_ms: 60_000 };

/** A mint for the row's own agent. */
function mint(changes: Record<string, unknown>, headers: Record<string, string> = {}) {
  return ({ agentId }: World) => ({
    method: "POST",
    path: "/capabilities",
    json: { agent_id: agentId, ...grant, ...changes },
    headers,
  });
}

function refused(what: string, changes: Record<string, unknown>, ...contains: string[]): Row {
  return {
    name: `POST /capabilities with ${what} is 400`,
    rules: ["SYS-CAP-02"],
    request: mint(changes),
    expect: { status: 400, reason: "invalid_request", contains },
    async after({ server, agentId }) {
      const { capabilities } = await server.context.capabilities.list({ agentId });
      expect(capabilities.length, "only the row's own capability").toBe(1);
    },
  };
}

const mints: Row[] = [
  {
    name: "POST /capabilities answers the record and its secret, and stores the hash alone",
    rules: ["SYS-CAP-01", "S2"],
    request: mint({ path_prefix: "/in/discord/", verbs: ["stat", "put", "PUT"], ttl_ms: 3_600_000 }),
    expect: ({ agentId }) => ({
      status: 201,
      mayShow: "secret",
      headers: { "cache-control": /no-store/ },
      json: { agent_id: agentId, path_prefix: "in/discord", verbs: ["PUT", "STAT"], single_use: false },
    }),
    async after({ server }, answer) {
      const body = JSON.parse(answer.text);
      expect(Object.keys(body).sort()).toEqual([
        "agent_id",
        "created_at",
        "expires_at",
        "path_prefix",
        "secret",
        "single_use",
        "token_id",
        "verbs",
      ]);
      expect(body.token_id).toMatch(/^cap_[A-Za-z0-9_-]{16}$/);
      expect(body.secret).toMatch(/^caps_[A-Za-z0-9_-]{43}$/);
      expect(body.expires_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(3_600_000);
      const row = await server.context.database.capabilities.findByTokenId(body.token_id);
      expect(row?.secret_hash).toBe(hashSecret(body.secret));
    },
  },
  {
    name: 'POST /capabilities takes "" as the whole workspace, and the longest life',
    rules: ["SYS-CAP-01", "SYS-CAP-02"],
    request: mint({ path_prefix: "", ttl_ms: 366 * DAY_MS, single_use: true }),
    expect: { status: 201, mayShow: "secret", json: { path_prefix: "", single_use: true } },
  },
  {
    name: "POST /capabilities shows author only when it is the agent",
    rules: ["SYS-CAP-02"],
    request: mint({ author: "agent" }),
    expect: { status: 201, mayShow: "secret", json: { author: "agent" } },
  },
  refused("a verb that executes", { verbs: ["PUT", "EXEC"] }, "EXEC is not on the system plane"),
  refused("HEAD as a verb", { verbs: ["HEAD"] }, "system plane"),
  refused("no verbs", { verbs: [] }, "verbs"),
  refused("verbs that are no list", { verbs: "PUT" }, "verbs"),
  ...["1h", null, -1, 0, 1.5, 9e15, 366 * DAY_MS + 1, true].map((ttl) =>
    refused(`ttl_ms ${JSON.stringify(ttl)} (report 4)`, { ttl_ms: ttl }, "ttl_ms")
  ),
  refused("an escaping prefix", { path_prefix: "in/../.." }, "path_prefix"),
  refused("a prefix with NUL", { path_prefix: "a\u0000b" }, "path_prefix"),
  refused("a prefix with a backslash", { path_prefix: "a\\b" }, "path_prefix"),
  refused("the reserved folder", { path_prefix: ".string/staging" }, "path_prefix"),
  refused("a prefix that is too long", { path_prefix: "x".repeat(256) }, "path_prefix"),
  refused("an unknown field", { ttl: 5 }, "unknown field", "ttl"),
  refused("an author that is not the agent", { author: "outside" }, "author"),
  refused("single_use that is no flag", { single_use: "yes" }, "single_use"),
  refused("no prefix", { path_prefix: undefined }, "path_prefix"),
  refused("an agent id that can be none", { agent_id: "../eve" }, "agent_id"),
  {
    name: "POST /capabilities with 1e400 as ttl_ms is 400",
    rules: ["SYS-CAP-02", "report 4"],
    request: ({ agentId }) => ({
      method: "POST",
      path: "/capabilities",
      headers: { "content-type": "application/json" },
      body: `{"agent_id":"${agentId}","path_prefix":"","verbs":["GET"],"ttl_ms":1e400}`,
    }),
    expect: { status: 400, reason: "invalid_request", contains: ["ttl_ms"] },
  },
  ...["[]", "null", '"x"', "{", "", "\ufeff{}x"].map((body): Row => ({
    name: `POST /capabilities with the body ${JSON.stringify(body)} is 400`,
    rules: ["SYS-CAP-02"],
    request: {
      method: "POST",
      path: "/capabilities",
      body,
      headers: { "content-type": "application/json; charset=utf-8" },
    },
    expect: { status: 400, reason: "invalid_request" },
  })),
  {
    name: "POST /capabilities with bytes that are no UTF-8 is 400",
    rules: ["SYS-CAP-02"],
    request: {
      method: "POST",
      path: "/capabilities",
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
      headers: { "content-type": "application/json" },
    },
    expect: { status: 400, reason: "invalid_request" },
  },
  {
    name: "POST /capabilities for an agent that is not there is 404",
    rules: ["SYS-CAP-02"],
    request: mint({ agent_id: "nobody" }),
    expect: { status: 404, reason: "agent_not_found" },
  },
  {
    name: "POST /capabilities with XML is 415",
    rules: ["SYS-CAP-02"],
    request: mint({}, { "content-type": "text/xml" }),
    expect: { status: 415, reason: "unsupported_media_type" },
  },
  {
    name: "POST /capabilities takes curl's form type when the body is a JSON object",
    rules: ["SYS-CAP-02"],
    request: mint({}, { "content-type": "application/x-www-form-urlencoded" }),
    expect: { status: 201, mayShow: "secret" },
  },
  {
    name: "POST /capabilities with a real form is 415",
    rules: ["SYS-CAP-02"],
    request: {
      method: "POST",
      path: "/capabilities",
      body: "agent_id=eve",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    },
    expect: { status: 415, reason: "unsupported_media_type" },
  },
  {
    name: "POST /capabilities takes no media type at all",
    rules: ["SYS-CAP-02"],
    request: ({ agentId }) => ({
      method: "POST",
      path: "/capabilities",
      body: new TextEncoder().encode(JSON.stringify({ agent_id: agentId, ...grant })),
    }),
    expect: { status: 201, mayShow: "secret" },
  },
  {
    name: "POST /capabilities with a body above 64 KiB is 413",
    rules: ["SYS-ERR-02"],
    request: mint({ path_prefix: "x".repeat(70_000) }),
    expect: { status: 413, reason: "too_large" },
  },
  {
    name: "POST /capabilities without a token is 401",
    rules: ["SYS-ERR-02"],
    request: (world) => ({ ...mint({})(world), as: "nobody" }),
    expect: { status: 401, reason: "admin_required" },
  },
  {
    name: "POST /capabilities with a capability's secret is 401 and does not repeat it",
    rules: ["SYS-ERR-03", "design: planes"],
    request: (world) => ({ ...mint({})(world), as: "bearer" }),
    expect: { status: 401, reason: "unknown_token" },
  },
  {
    name: "POST /capabilities does not repeat a secret that was sent as a value",
    rules: ["SYS-ERR-03"],
    request: (world) => mint({ single_use: world.capability.secret })(world),
    expect: { status: 400, reason: "invalid_request", contains: ["caps_…"] },
  },
];

const lists: Row[] = [
  {
    name: "GET /capabilities lists one agent's records, newest first, without secrets",
    rules: ["SYS-CAP-03"],
    async before({ send, agentId, notes }) {
      for (const path_prefix of ["b", "c"]) {
        const answer = await send({
          method: "POST",
          path: "/capabilities",
          json: { agent_id: agentId, ...grant, path_prefix },
        });
        notes[path_prefix] = JSON.parse(answer.text).secret;
      }
    },
    request: ({ agentId }) => ({ method: "GET", path: `/capabilities?agent_id=${agentId}` }),
    expect: ({ notes }) => ({ status: 200, lacks: ["secret", notes.b ?? "?", notes.c ?? "?"] }),
    after({ capability }, answer) {
      const { capabilities, cursor } = JSON.parse(answer.text);
      expect(capabilities.map((one: { path_prefix: string }) => one.path_prefix)).toEqual(["c", "b", ""]);
      expect(capabilities[2]).toMatchObject({ token_id: capability.token_id, status: "live" });
      expect(cursor).toBeUndefined();
    },
  },
  {
    name: "GET /capabilities pages with limit and cursor, each record once",
    rules: ["SYS-CAP-03"],
    async before({ server, agentId }) {
      for (let n = 0; n < 4; n++) {
        await server.context.capabilities.mint({
          pathPrefix: `p${n}` as never,
          verbs: ["GET"],
          ttlMs: 60_000,
          singleUse: false,
          author: "outside",
        }, agentId);
      }
    },
    request: ({ agentId }) => ({ method: "GET", path: `/capabilities?agent_id=${agentId}&limit=2` }),
    expect: { status: 200 },
    async after({ send, agentId }, answer) {
      const seen: string[] = [];
      let page = JSON.parse(answer.text);
      for (;;) {
        seen.push(...page.capabilities.map((one: { path_prefix: string }) => one.path_prefix));
        if (page.cursor === undefined) break;
        const path = `/capabilities?agent_id=${agentId}&limit=2&cursor=${page.cursor}`;
        page = JSON.parse((await send({ method: "GET", path })).text);
      }
      expect(seen).toEqual(["p3", "p2", "p1", "p0", ""]);
    },
  },
  {
    name: "GET /capabilities says what each record is",
    rules: ["SYS-CAP-03"],
    files: { a: "1" },
    grant: { single_use: true },
    async before({ send, server, agentId }) {
      expect((await send({ method: "GET", path: "/fs/a" })).status).toBe(200);
      const revoked = await server.mint({ agent_id: agentId });
      await send({ method: "DELETE", path: `/capabilities/${revoked.token_id}` });
      const expired = await server.mint({ agent_id: agentId, ttl_ms: 1 });
      while (Date.now() <= Date.parse(expired.expires_at)) await new Promise((done) => setTimeout(done, 1));
    },
    request: ({ agentId }) => ({ method: "GET", path: `/capabilities?agent_id=${agentId}` }),
    expect: { status: 200 },
    after(_, answer) {
      const { capabilities } = JSON.parse(answer.text);
      expect(capabilities.map((one: { status: string }) => one.status)).toEqual([
        "expired",
        "revoked",
        "consumed",
      ]);
      expect(capabilities[2].consumed_at).toMatch(/Z$/);
      expect(capabilities[1].revoked_at).toMatch(/Z$/);
    },
  },
  {
    name: "GET /capabilities of an agent that is not there is an empty page",
    rules: ["SYS-CAP-03"],
    request: { method: "GET", path: "/capabilities?agent_id=nobody" },
    expect: { status: 200, json: { capabilities: [] } },
  },
  ...["limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "cursor=!", "cursor=MA", "agent_id=%zz"].map(
    (query): Row => ({
      name: `GET /capabilities?${query} is 400`,
      rules: ["SYS-CAP-03"],
      request: { method: "GET", target: `/capabilities?${query}` },
      expect: { status: 400, reason: "invalid_request" },
    }),
  ),
];

const revocations: Row[] = [
  {
    name: "DELETE /capabilities/{token_id} kills it from the next request on",
    rules: ["SYS-CAP-04", "seed 401"],
    files: { a: "1" },
    before: async ({ send }) => expect((await send({ method: "GET", path: "/fs/a" })).status).toBe(200),
    request: ({ capability }) => ({ method: "DELETE", path: `/capabilities/${capability.token_id}` }),
    expect: ({ capability }) => ({ status: 200, json: { token_id: capability.token_id, revoked: true } }),
    after: async ({ send }) => expect((await send({ method: "GET", path: "/fs/a" })).status).toBe(401),
  },
  {
    name: "DELETE /capabilities/{token_id} of a dead one says revoked false",
    rules: ["SYS-CAP-04"],
    before: async ({ send, capability }) => {
      await send({ method: "DELETE", path: `/capabilities/${capability.token_id}` });
    },
    request: ({ capability }) => ({ method: "DELETE", path: `/capabilities/${capability.token_id}` }),
    expect: { status: 200, json: { revoked: false } },
  },
  ...["cap_neverthereatall0", "x", "cap_%00", "..%2f", "cap_' OR 1=1"].map((id): Row => ({
    name: `DELETE /capabilities/${id} is 404`,
    rules: ["SYS-CAP-04"],
    request: { method: "DELETE", target: `/capabilities/${id.replaceAll(" ", "%20")}` },
    expect: { status: 404, reason: "capability_not_found" },
  })),
];

revocations.push({
  name: "a record that died more than seven days ago is dropped, a younger one is kept",
  rules: ["SYS-CAP-05"],
  async before({ server, agentId, capability, notes }) {
    const younger = await server.mint({ agent_id: agentId });
    notes.younger = younger.token_id;
    const expire = (tokenId: string, ageMs: number) =>
      server.context.database.engine.write([{
        sql: "UPDATE capabilities SET expires_at = ? WHERE token_id = ?",
        parameters: [Date.now() - ageMs, tokenId],
      }]);
    await expire(capability.token_id, 7 * DAY_MS + 60_000);
    await expire(younger.token_id, 7 * DAY_MS - 60_000);
    await server.context.capabilities.purge();
  },
  request: ({ agentId }) => ({ method: "GET", path: `/capabilities?agent_id=${agentId}` }),
  expect: { status: 200 },
  async after({ send, notes }, answer) {
    const { capabilities } = JSON.parse(answer.text);
    expect(capabilities.map((one: { token_id: string }) => one.token_id)).toEqual([notes.younger]);
    const dead = await send({ method: "GET", path: "/fs/a" });
    expect([dead.status, JSON.parse(dead.text).reason]).toEqual([401, "unknown_token"]);
  },
});

testRows("POST /capabilities", mints);
testRows("GET /capabilities", lists);
testRows("DELETE /capabilities/{token_id}", revocations);
testRows("POST /capabilities where max_ttl_ms is an hour (SYS-CAP-02)", [
  { ...refused("a longer life than configured", { ttl_ms: 3_600_001 }, "3600000"), grant: { ttl_ms: 1000 } },
], { env: { STRING_MAX_TTL: "1h" } });
