/** Pairing, records, webhook URLs and teardown (SYS-AG). */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { placeFiles, type Row, testRows } from "./rows.ts";

/** A pairing of an agent that is not there yet: the row's own id with "-new". */
function pair(body: Record<string, unknown>) {
  return ({ agentId }: { agentId: string }) => ({
    method: "POST",
    path: "/agents",
    json: { agent_id: `${agentId}-new`, ...body },
  });
}

function refused(what: string, body: Record<string, unknown>, ...contains: string[]): Row {
  return {
    name: `POST /agents with ${what} is 400 and makes nothing`,
    rules: ["SYS-AG-01"],
    request: pair(body),
    expect: { status: 400, reason: "invalid_request", contains },
    async after({ server, agentId, home }) {
      const ids = (await server.context.agents.list()).map((agent) => agent.agent_id);
      expect(ids.includes(`${agentId}-new`)).toBe(false);
      await expect(Deno.lstat(`${home}-new`)).rejects.toThrow(Deno.errors.NotFound);
    },
  };
}

const pairings: Row[] = [
  {
    name: "POST /agents makes an agent with its home and nothing that was not asked for",
    rules: ["SYS-AG-01", "SYS-AG-08"],
    request: pair({}),
    expect: ({ agentId, home }) => ({
      status: 200,
      mayShow: "home",
      body: JSON.stringify({ agent_id: `${agentId}-new`, home: `${home}-new`, created: true }) + "\n",
    }),
    after: async ({ home }) => expect((await Deno.stat(`${home}-new`)).isDirectory).toBe(true),
  },
  {
    name: "POST /agents again says created false and keeps the files",
    rules: ["SYS-AG-01"],
    files: { kept: "1" },
    request: ({ agentId }) => ({ method: "POST", path: "/agents", json: { agent_id: agentId } }),
    expect: { status: 200, mayShow: "home", json: { created: false } },
    disk: { kept: "1" },
  },
  {
    name: "POST /agents gives URL, key and capability when they are asked for",
    rules: ["SYS-AG-01", "seed pairing"],
    request: pair({
      webhook: true,
      key: true,
      capability: { path_prefix: "inbox/discord", verbs: ["PUT", "STAT"], ttl_ms: 86_400_000 },
    }),
    expect: { status: 200, mayShow: "both", json: { capability: { path_prefix: "inbox/discord" } } },
    async after({ send, server, home }, answer) {
      const { webhook_url, agent_key, capability } = JSON.parse(answer.text);
      expect(webhook_url).toMatch(new RegExp(`^${server.url}/webhook/[A-Za-z0-9_-]{43}$`));
      expect(agent_key).toMatch(/^agk_[A-Za-z0-9_-]{43}$/);
      const put = await send({
        method: "PUT",
        path: `/fs/inbox/discord/m.txt?cap=${capability.secret}`,
        body: "hi",
        as: "nobody",
      });
      expect(put.status).toBe(201);
      expect(await Deno.readTextFile(join(`${home}-new`, "inbox/discord/m.txt"))).toBe("hi");
    },
  },
  {
    name: "POST /agents takes an empty allowed_paths and the usual home of older clients",
    rules: ["SYS-AG-08"],
    request: (world) => pair({ allowed_paths: [], home: `${world.home}-new` })(world),
    expect: { status: 200, mayShow: "home", json: { created: true } },
  },
  refused("a bad capability", { capability: { path_prefix: "", verbs: ["EXEC"], ttl_ms: 1 } }, "EXEC"),
  refused("a capability that is no object", { capability: [] }),
  refused("an unknown field in the capability", {
    capability: { path_prefix: "", verbs: ["GET"], ttl_ms: 1, agent_id: "eve" },
  }, "agent_id"),
  refused("an unknown field", { name: "x" }, "unknown field"),
  refused("webhook that is no flag", { webhook: "yes" }, "webhook"),
  refused("key that is no flag", { key: 1 }, "key"),
  refused("allowed_paths", { allowed_paths: ["/tmp"] }, "allowed_paths"),
  refused("a home outside every listed folder", { home: "/srv/elsewhere" }, "--homes"),
  refused("a relative home", { home: "elsewhere" }, "--homes"),
  refused("a home that is no text", { home: 5 }, "home"),
];

const BAD_IDS = [
  "..",
  ".",
  "",
  "a/b",
  "a\u0000",
  "CON",
  "-rf",
  ".hidden",
  "a..b",
  "x".repeat(300),
  "x".repeat(65),
  "Eve",
  "eve ",
  "eve\n",
  "é",
  "a\\b",
  "%2e%2e",
];

const ids: Row[] = BAD_IDS.map((id): Row => ({
  name: `POST /agents with the id ${JSON.stringify(id.slice(0, 20))} is 400 and makes nothing`,
  rules: ["SYS-AG-02", "report 22"],
  request: {
    method: "POST",
    path: "/agents",
    json: { agent_id: id, capability: { path_prefix: "", verbs: ["GET"], ttl_ms: 1000 } },
  },
  expect: { status: 400, reason: "invalid_request", contains: ["a-z, 0-9"] },
  async after({ server }) {
    const stored = (await server.context.agents.list()).map((agent) => agent.agent_id).sort();
    const folders = [...Deno.readDirSync(join(server.dataFolder, "workspaces"))].map(({ name }) => name)
      .sort();
    expect(folders).toEqual(stored);
    expect(stored.every((name) => name.startsWith("row-"))).toBe(true);
  },
}));

ids.push({
  name: "POST /agents takes the longest id and every allowed character",
  rules: ["SYS-AG-02"],
  request: { method: "POST", path: "/agents", json: { agent_id: `0a.b_c-d${"x".repeat(56)}` } },
  expect: { status: 200, mayShow: "home", json: { created: true } },
}, {
  name: "POST /agents with an id that is no text is 400",
  rules: ["SYS-AG-02"],
  request: { method: "POST", path: "/agents", json: { agent_id: 5 } },
  expect: { status: 400, reason: "invalid_request" },
});

const records: Row[] = [
  {
    name: "GET /agents/{id} answers the record, with the names of older clients",
    rules: ["SYS-AG-03"],
    request: ({ agentId }) => ({ method: "GET", path: `/agents/${agentId}` }),
    expect: ({ agentId, home }) => ({
      status: 200,
      mayShow: "home",
      json: { agent_id: agentId, id: agentId, home },
    }),
    after(_, answer) {
      const { created_at, createdAt } = JSON.parse(answer.text);
      expect(created_at).toMatch(/^\d{4}-.*Z$/);
      expect(createdAt).toBe(created_at);
    },
  },
  ...["nobody", "%2e%2e", "EVE", "a%00b", "x".repeat(3000)].map((id): Row => ({
    name: `GET /agents/${id.slice(0, 20)} is 404`,
    rules: ["SYS-AG-03"],
    request: { method: "GET", target: `/agents/${id}` },
    expect: { status: 404, reason: "agent_not_found" },
  })),
  {
    name: "DELETE /agents/{id} of nobody is 200 with zeros",
    rules: ["SYS-AG-04"],
    request: { method: "DELETE", path: "/agents/nobody" },
    expect: {
      status: 200,
      body: '{"agent_id":"nobody","deleted":false,"revoked_capabilities":0,"disposed_sessions":0}\n',
    },
  },
  ...["key", "webhook"].map((what): Row => ({
    name: `POST /agents/{id}/${what} of nobody is 404`,
    rules: ["SYS-AG-05"],
    request: { method: "POST", path: `/agents/nobody/${what}` },
    expect: { status: 404, reason: "agent_not_found" },
  })),
  {
    name: "GET /agents/{id}/webhook shows the URL that the pairing gave",
    rules: ["SYS-AG-05"],
    async before({ send, agentId, notes }) {
      const answer = await send({
        method: "POST",
        path: "/agents",
        json: { agent_id: agentId, webhook: true },
      });
      notes.url = JSON.parse(answer.text).webhook_url;
    },
    request: ({ agentId }) => ({ method: "GET", path: `/agents/${agentId}/webhook` }),
    expect: ({ notes, agentId }) => ({ status: 200, json: { agent_id: agentId, webhook_url: notes.url } }),
  },
  {
    name: "GET /agents/{id}/webhook never builds the URL from Host",
    rules: ["SYS-AG-05"],
    request: ({ agentId }) => ({
      method: "GET",
      target: `/agents/${agentId}/webhook`,
      headers: { host: "evil.example" },
    }),
    expect: { status: 200, contains: ["http://127.0.0.1:"], lacks: ["evil.example"] },
  },
];

testRows("POST /agents", pairings);
testRows("ids of POST /agents", ids);
testRows("agents on record", records);
testRows("webhook URLs under a public URL (SYS-AG-05)", [{
  name: "GET /agents/{id}/webhook begins with the public URL",
  rules: ["SYS-AG-05"],
  request: ({ agentId }) => ({ method: "GET", path: `/agents/${agentId}/webhook` }),
  expect: { status: 200, contains: ['"webhook_url":"https://string.example/base/webhook/'] },
}], { flags: { publicUrl: "https://string.example/base/" } });

Deno.test("DELETE /agents/{id} ends everything but the files, and counts it (SYS-AG-04, report 5)", async () => {
  await using server = await startServer();
  const paired = await server.admin("POST", "/agents", { agent_id: "eve", webhook: true, key: true });
  const { webhook_url: url, agent_key: key } = paired.body as Record<string, string>;
  const live = await server.mint({});
  await server.mint({ path_prefix: "b" });
  const revoked = await server.mint({ path_prefix: "c" });
  await server.admin("DELETE", `/capabilities/${revoked.token_id}`);
  const others = await server.mint({ agent_id: "bob" });
  placeFiles(server.home("eve"), { "notes.md": "mine" });
  placeFiles(server.home("bob"), { "notes.md": "bob's" });
  expect(await (await server.fetch(`/fs/notes.md?cap=${live.secret}`)).text()).toBe("mine");

  const teardown = await server.admin("DELETE", "/agents/eve");
  expect(teardown.body).toEqual({
    agent_id: "eve",
    deleted: true,
    revoked_capabilities: 2,
    disposed_sessions: 0,
  });
  expect(await Deno.readTextFile(join(server.home("eve"), "notes.md"))).toBe("mine");
  expect((await server.admin("GET", "/agents/eve")).status).toBe(404);
  expect((await server.admin("GET", "/agents")).body).toMatchObject({ agents: [{ agent_id: "bob" }] });

  const again = await server.admin("POST", "/agents", { agent_id: "eve", webhook: true });
  expect(again.body.created).toBe(true);
  expect(again.body.webhook_url).not.toBe(url);
  const dead = await server.fetch(`/fs/notes.md?cap=${live.secret}`);
  expect([dead.status, (await dead.json()).reason]).toEqual([401, "revoked"]);
  const keyed = await server.fetch("/events", { headers: { authorization: `Bearer ${key}` } });
  expect([keyed.status, (await keyed.json()).reason]).toEqual([401, "unknown_token"]);
  const hook = await fetch(url ?? "", { method: "POST", body: "hello" });
  expect([hook.status, (await hook.json()).reason]).toEqual([401, "unknown_token"]);
  const mine = await server.mint({});
  expect(await (await server.fetch(`/fs/notes.md?cap=${mine.secret}`)).text()).toBe("mine");
  expect(await (await server.fetch(`/fs/notes.md?cap=${others.secret}`)).text()).toBe("bob's");
});

Deno.test("POST /agents/{id}/webhook rotates the URL; re-pairing and showing keep it (SYS-AG-05)", async () => {
  await using server = await startServer();
  const pairAgain = async () =>
    (await server.admin("POST", "/agents", { agent_id: "eve", webhook: true })).body.webhook_url as string;
  const first = await pairAgain();
  expect(await pairAgain()).toBe(first);
  const rotated = (await server.admin("POST", "/agents/eve/webhook")).body.webhook_url as string;
  expect(rotated).not.toBe(first);
  expect(await pairAgain()).toBe(rotated);
  expect((await server.admin("GET", "/agents/eve/webhook")).body.webhook_url).toBe(rotated);
  const send = async (url: string) => {
    const response = await fetch(url, { method: "POST", body: "hello" });
    await response.body?.cancel();
    return response.status;
  };
  expect([await send(first), await send(rotated)]).toEqual([401, 202]);
});

Deno.test("an agent and its URL outlive the server (SYS-AG-05)", async () => {
  const first = await startServer();
  const pairing = { agent_id: "eve", webhook: true };
  const url = (await first.admin("POST", "/agents", pairing)).body.webhook_url as string;
  await first.stop();
  await using second = await startServer({ dataFolder: first.dataFolder });
  const again = await second.admin("POST", "/agents", pairing);
  expect(again.body).toMatchObject({ created: false });
  expect((again.body.webhook_url as string).split("/webhook/")[1]).toBe(url.split("/webhook/")[1]);
});
