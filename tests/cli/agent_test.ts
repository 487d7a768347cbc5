import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { run, startServer, withTempFolder } from "./harness.ts";

const EVE = { agent_id: "eve", id: "eve", home: "/d/eve", created_at: "2026-01-01T00:00:00.000Z" };
const ADAM = { ...EVE, agent_id: "adam", id: "adam", home: "/d/adam" };
const MINT = ["agent", "capability", "mint", "--path", "a", "--verbs", "get", "--ttl", "1h"];
const MINTED = {
  token_id: "cap_a",
  secret: "caps_s",
  agent_id: "eve",
  path_prefix: "a",
  verbs: ["GET"],
  expires_at: "2026-01-01T00:00:00.000Z",
  single_use: false,
};

Deno.test("agent create sends what was asked for and prints what is shown once", async () => {
  await using server = startServer({
    "POST /agents": [200, {
      agent_id: "eve",
      home: "/d/eve",
      created: true,
      webhook_url: "http://h/webhook/t",
      agent_key: "agk_k",
    }],
  });
  const args = ["agent", "create", "eve", "--webhook", "--key", "--home", "/d/eve"];
  const ran = await run(args, { STRING_URL: server.url });
  expect(ran).toEqual({
    code: 0,
    err: "",
    out: `Created agent 'eve':
  home:    /d/eve
  webhook: http://h/webhook/t
  key:     agk_k
`,
  });
  expect(server.seen[0]?.body).toEqual({ agent_id: "eve", webhook: true, key: true, home: "/d/eve" });
});

Deno.test("agent create says when the agent was there already, and asks for nothing that was not asked for", async () => {
  await using server = startServer({
    "POST /agents": [200, { agent_id: "eve", home: "/d/eve", created: false }],
  });
  const ran = await run(["agent", "create", "eve"], { STRING_URL: server.url });
  expect(ran.out).toBe("Agent 'eve' was there already:\n  home:    /d/eve\n");
  expect(server.seen[0]?.body).toEqual({ agent_id: "eve" });
});

Deno.test("agent list and agent delete print for people and for programs", async () => {
  const teardown = { agent_id: "eve", deleted: true, revoked_capabilities: 3, disposed_sessions: 1 };
  await using server = startServer({
    "GET /agents": [200, { agents: [EVE, ADAM] }],
    "DELETE /agents/eve": [200, teardown],
    "DELETE /agents/no": [200, {
      agent_id: "no",
      deleted: false,
      revoked_capabilities: 0,
      disposed_sessions: 0,
    }],
  });
  const env = { STRING_URL: server.url };
  expect((await run(["agent", "list"], env)).out).toBe(`Agents (2):
  AGENT  CREATED                   HOME
  eve    2026-01-01T00:00:00.000Z  /d/eve
  adam   2026-01-01T00:00:00.000Z  /d/adam
`);
  expect(JSON.parse((await run(["agent", "list", "--json"], env)).out)).toEqual({ agents: [EVE, ADAM] });
  expect((await run(["agent", "delete", "eve"], env)).out).toBe(`Deleted agent 'eve'; its files stay:
  revoked capabilities: 3
  disposed sessions:    1
`);
  expect(JSON.parse((await run(["agent", "delete", "eve", "--json"], env)).out)).toEqual(teardown);
  expect(await run(["agent", "delete", "no"], env)).toEqual({
    code: 0,
    out: "There was no agent 'no'\n",
    err: "",
  });
});

Deno.test("the agent is --agent, else STRING_AGENT_ID, else the chosen one, else the only one", () =>
  withTempFolder(async (folder) => {
    await using server = startServer({
      "GET /agents": [200, { agents: [EVE] }],
      "GET /agents/chosen": [200, { ...EVE, agent_id: "chosen" }],
      "POST /capabilities": [201, MINTED],
    });
    const env = { STRING_URL: server.url, XDG_CONFIG_HOME: folder };
    const agentOf = async (args: string[], more: Record<string, string> = {}) => {
      expect((await run([...MINT, ...args], { ...env, ...more })).code).toBe(0);
      return (server.seen.at(-1)?.body as { agent_id?: string }).agent_id;
    };
    expect(await agentOf([])).toBe("eve");
    expect(await run(["agent", "use", "chosen"], env)).toEqual({
      code: 0,
      out: `Using agent 'chosen' on ${server.url}\n`,
      err: "",
    });
    expect(await agentOf([])).toBe("chosen");
    expect(await agentOf([], { STRING_AGENT_ID: "env" })).toBe("env");
    expect(await agentOf(["--agent", "flag"], { STRING_AGENT_ID: "env" })).toBe("flag");

    const file = join(folder, "string", "agents.json");
    expect(JSON.parse(await Deno.readTextFile(file))).toEqual({ [server.url]: "chosen" });
    if (Deno.build.os !== "windows") expect(((await Deno.stat(file)).mode ?? 0) & 0o777).toBe(0o600);
    await using other = startServer({ "GET /agents": [200, { agents: [] }] });
    expect(await run(MINT, { ...env, STRING_URL: other.url })).toMatchObject({ code: 3 });
    await Deno.writeTextFile(file, "torso");
    expect(await agentOf([])).toBe("eve");
  }));

Deno.test("several agents and none chosen is an error that lists them", async () => {
  await using server = startServer({ "GET /agents": [200, { agents: [EVE, ADAM] }] });
  const ran = await run(MINT, { STRING_URL: server.url });
  expect([ran.code, ran.out]).toEqual([2, ""]);
  expect(ran.err).toContain("eve, adam");
  expect(ran.err).toContain("string agent use ID");
});

Deno.test("agent use refuses an unknown agent, and suggests STRING_AGENT_ID where there is no HOME", () =>
  withTempFolder(async (folder) => {
    await using server = startServer({ "GET /agents/eve": [200, EVE] });
    const unknown = await run(["agent", "use", "no"], { STRING_URL: server.url, HOME: folder });
    expect(unknown.code).toBe(3);
    expect([...Deno.readDirSync(folder)]).toEqual([]);
    const homeless = await run(["agent", "use", "eve"], { STRING_URL: server.url });
    expect([homeless.code, homeless.out]).toEqual([1, ""]);
    expect(homeless.err).toContain("STRING_AGENT_ID=eve");
    expect((await run(["agent", "use", "eve"], { STRING_URL: server.url, HOME: folder })).code).toBe(0);
    expect((await Deno.stat(join(folder, ".config", "string", "agents.json"))).isFile).toBe(true);
  }));
