/** The command line against a real server, from pairing to teardown, in the seed's very words. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { type Ran, runString, serve, type Serving } from "../helpers/program.ts";

const ISO = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

type Run = (line: string, env?: Record<string, string>) => Promise<Ran>;

/** A server, and the command line of its user with a place for what it keeps. */
function withCli(use: (run: Run, server: Serving) => Promise<void>): Promise<void> {
  return withFolder(async (home) => {
    await using server = await serve({ dataFolder: join(home, "data") });
    const known = { HOME: home, XDG_CONFIG_HOME: undefined, STRING_DATA: server.dataFolder };
    await use((line, env = {}) => runString(line.split(" "), { env: { ...known, ...env } }), server);
  });
}

/** Fails unless a command went well without a complaint; returns what it printed. */
async function printed(ran: Promise<Ran>): Promise<string> {
  const { code, out, err } = await ran;
  expect([code, err]).toEqual([0, ""]);
  return out;
}

Deno.test("string agent capability mint prints the four lines of the seed, and the secret works once", () =>
  withCli(async (run, server) => {
    await printed(run("agent create eve"));
    const minted = await printed(
      run("agent capability mint --path outbox/report.pdf --verbs get --ttl 15m --single-use"),
    );
    expect(minted).toMatch(
      new RegExp(
        String.raw`^Minted capability cap_[\w-]+ into workspace 'eve':\n` +
          String.raw`  scope:   outbox/report\.pdf \[GET\]\n` +
          String.raw`  expires: ${ISO}   single-use\n` +
          String.raw`  secret: caps_[\w-]{43}\n$`,
      ),
    );
    const standing = await printed(
      run("agent capability mint --path inbox/discord --verbs put,stat --ttl 1h"),
    );
    expect(standing).toMatch(
      new RegExp(String.raw`\n  scope:   inbox/discord \[PUT, STAT\]\n  expires: ${ISO}\n`),
    );
    const secretOf = (text: string) => /secret: (\S+)/.exec(text)?.[1] ?? "";
    expectStatus(await put(toLink(server.url, "inbox/discord/cat", secretOf(standing)), "cat"), 201);
    await Deno.mkdir(join(server.dataFolder, "workspaces/eve/outbox"));
    await Deno.writeTextFile(join(server.dataFolder, "workspaces/eve/outbox/report.pdf"), "numbers");
    const link = toLink(server.url, "outbox/report.pdf", secretOf(minted));
    expect(expectStatus(await ask(link), 200).text).toBe("numbers");
    expectStatus(await ask(link), 401);
  }));

Deno.test("string agent capability list and revoke tell what lives, and never a secret", () =>
  withCli(async (run, server) => {
    await printed(run("agent create eve"));
    expect(await printed(run("agent capability list"))).toBe("Capabilities (0):\n");
    const minted = JSON.parse(
      await printed(run("agent capability mint --path a --verbs put --ttl 1h --json")),
    );
    expect(minted).toMatchObject({ agent_id: "eve", path_prefix: "a", verbs: ["PUT"], single_use: false });
    const listed = await printed(run("agent capability list"));
    expect(listed).toMatch(/^Capabilities \(1\):\n +ID +AGENT +STATUS/);
    expect(listed).toMatch(new RegExp(`${minted.token_id} +eve +live +PUT`));
    const json = await printed(run("agent capability list --json"));
    expect(JSON.parse(json).capabilities).toMatchObject([{ token_id: minted.token_id, status: "live" }]);
    expect(listed + json).not.toContain("caps_");
    expect(await printed(run(`agent capability revoke ${minted.token_id}`))).toBe(
      `Revoked ${minted.token_id}\n`,
    );
    expectStatus(await put(toLink(server.url, "a", minted.secret), "x"), 401);
    expect(await printed(run(`agent capability revoke ${minted.token_id}`))).toContain("dead already");
    expect(JSON.parse(await printed(run(`agent capability revoke ${minted.token_id} --json`))))
      .toEqual({ token_id: minted.token_id, revoked: false });
  }));

Deno.test("string agent create, list, use and delete: the agent is chosen by flag, variable, choice, or is the only one", () =>
  withCli(async (run) => {
    const created = JSON.parse(await printed(run("agent create eve --webhook --key --json")));
    expect(created).toMatchObject({ agent_id: "eve", created: true });
    expect([created.webhook_url, created.agent_key].join(" ")).toMatch(/^http:\S+ agk_/);
    expect(await printed(run("agent create bob"))).toMatch(/^Created agent 'bob':\n +home: +\//);
    expect(await printed(run("agent create bob"))).toContain("was there already");
    const mint = "agent capability mint --path a --verbs get --ttl 1h";
    const torn = await run(mint);
    expect(torn.code).not.toBe(0);
    expect(torn.err).toMatch(/bob[^]*eve|eve[^]*bob/);
    expect(await printed(run(`${mint} --agent bob`))).toContain("'bob'");
    expect(await printed(run(mint, { STRING_AGENT_ID: "bob" }))).toContain("'bob'");
    expect(await printed(run("agent use eve"))).toContain("Using agent 'eve'");
    expect(await printed(run(mint))).toContain("'eve'");
    const listed = await printed(run("agent list"));
    expect(listed).toMatch(/^Agents \(2\):\n +AGENT +CREATED +HOME\n/);
    expect(JSON.parse(await printed(run("agent list --json"))).agents).toHaveLength(2);
    const deleted = await printed(run("agent delete bob"));
    expect(deleted).toMatch(/^Deleted agent 'bob'; its files stay:\n +revoked capabilities: 2\n/);
    expect(await printed(run("agent delete bob"))).toBe("There was no agent 'bob'\n");
  }));

Deno.test("exit codes tell a script what went wrong, and the words go to standard error", () =>
  withCli(async (run, server) => {
    await printed(run("agent create eve"));
    const rows: readonly (readonly [line: string, code: number, env?: Record<string, string>])[] = [
      ["agent create Eve", 2],
      ["agent capability mint --path a --verbs get", 2],
      ["agent capability mint --path a --verbs get --ttl soon", 2],
      ["agent capability mint --path a --verbs exec --ttl 1h", 2],
      ["agent capability mint --path ../x --verbs get --ttl 1h", 2],
      ["agent use nobody", 3],
      ["agent capability revoke cap_none", 3],
      ["agent capability mint --path a --verbs get --ttl 1h --agent nobody", 3],
      ["agent list", 4, { STRING_ADMIN_TOKEN: "adm_" + "x".repeat(43) }],
      ["agent list", 6, { STRING_URL: "http://127.0.0.1:1" }],
    ];
    for (const [line, code, env] of rows) {
      const ran = await run(line, env);
      expect([ran.code, ran.out], `${line}: ${ran.err}`).toEqual([code, ""]);
      expect(ran.err).toMatch(/^error: /);
    }
    const secret = (await run("agent capability revoke caps_" + "s".repeat(43))).err;
    expect(secret).not.toContain("s".repeat(43));
    // Killed, it leaves its address behind; a clean stop would send the command to the usual port instead.
    await server.stop("SIGKILL");
    expect((await run("agent list")).code).toBe(6);
  }));
