import { AppError } from "../../base/errors.ts";
import type { Grant } from "../../caps/grant.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { placeFiles } from "../routes/rows.ts";
import { refusalOf } from "../store/database/helpers.ts";

const CAPABILITY: Grant = {
  pathPrefix: "in" as never,
  verbs: ["PUT"],
  ttlMs: 60_000,
  singleUse: false,
  author: "outside",
};

async function isThere(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

function codeOf(error: unknown): string {
  return error instanceof AppError ? error.code : String(error);
}

/** Lets no page be added to the database from now on. */
async function limitDatabase({ context }: TestServer): Promise<void> {
  const { engine } = context.database;
  const [row] = await engine.read({ sql: "PRAGMA page_count", parameters: [] });
  await engine.read({ sql: `PRAGMA max_page_count = ${Number(row?.page_count)}`, parameters: [] });
}

Deno.test("pair() leaves neither folder nor row when the database is full (SYS-AG-01)", async () => {
  await using server = await startServer();
  const { agents } = server.context;
  await limitDatabase(server);
  let refused = "";
  for (let n = 0; n < 500 && refused === ""; n++) {
    const agentId = `agent-${n}`;
    const outcome = await agents.pair({ agentId, key: true, capability: CAPABILITY }).catch(codeOf);
    if (typeof outcome !== "string") continue;
    expect(outcome).toBe("disk_full");
    refused = agentId;
  }
  expect(refused).not.toBe("");
  expect(await isThere(server.home(refused))).toBe(false);
  expect(codeOf(await refusalOf(agents.get(refused)))).toBe("agent_not_found");
  const { capabilities } = await server.context.capabilities.list({ agentId: refused });
  expect(capabilities).toEqual([]);
});

Deno.test("pair() that fails leaves a folder with files, and an agent that was there, as they were", async () => {
  await using server = await startServer();
  const { agents, database } = server.context;
  const { agentKey } = await agents.pair({ agentId: "eve", key: true });
  const before = await agents.get("eve");
  placeFiles(server.home("left-over"), { "notes.md": "of an earlier agent" });
  const fail = "CREATE TRIGGER broken BEFORE INSERT ON capabilities BEGIN SELECT RAISE(ABORT, 'broken'); END";
  await database.engine.write([{ sql: fail, parameters: [] }]);
  for (const agentId of ["eve", "left-over", "new"]) {
    await refusalOf(agents.pair({ agentId, key: true, capability: CAPABILITY }));
  }
  expect(await agents.get("eve"), "its key too").toEqual(before);
  expect(await Deno.readTextFile(`${server.home("left-over")}/notes.md`)).toBe("of an earlier agent");
  expect(await isThere(server.home("new"))).toBe(false);
  expect((await agents.list()).map(({ agent_id }) => agent_id)).toEqual(["eve"]);
  const events = await server.fetch("/events", { headers: { authorization: `Bearer ${agentKey}` } });
  expect(events.status).toBe(200);
  await events.body?.cancel();
});

Deno.test("pair() of one id at once makes one agent with one home", async () => {
  await using server = await startServer();
  const { agents } = server.context;
  const paired = await Promise.all(Array.from({ length: 10 }, () => agents.pair({ agentId: "eve" })));
  expect(paired.filter(({ created }) => created).length).toBe(1);
  expect(new Set(paired.map(({ agent }) => agent.incarnation)).size).toBe(1);
  expect(await isThere(server.home("eve"))).toBe(true);
});

Deno.test("pair() of two ids at once never gives them one home, nor one inside the other (SYS-AG-08)", async () => {
  const listed = await Deno.realPath(await Deno.makeTempDir());
  try {
    await using server = await startServer({ flags: { homes: [listed] } });
    const { agents } = server.context;
    const outcomes = await Promise.all(
      ["a", "b", "c", "d"].map((agentId, n) =>
        agents.pair({ agentId, home: n % 2 === 0 ? `${listed}/one` : `${listed}/one/inner` })
          .then(() => "paired", codeOf)
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "paired").length).toBe(1);
    expect(outcomes.filter((outcome) => outcome === "invalid_request").length).toBe(3);
    expect(await agents.count()).toBe(1);
  } finally {
    await Deno.remove(listed, { recursive: true });
  }
});

Deno.test("remove() and pair() at once end in one of the two orders, whole", async () => {
  await using server = await startServer();
  const { agents, capabilities } = server.context;
  for (let round = 0; round < 10; round++) {
    const { capability } = await agents.pair({ agentId: "eve", capability: CAPABILITY });
    const [, again] = await Promise.all([agents.remove("eve"), agents.pair({ agentId: "eve" })]);
    const alive = await agents.get("eve").then((agent) => agent.incarnation, () => undefined);
    expect(alive === undefined ? again.created : !again.created, "removed last, or paired anew").toBe(false);
    const found = await capabilities.find(capability?.token_id ?? "");
    expect(found?.revokedAtMs).not.toBe(null);
    await agents.remove("eve");
  }
});

Deno.test("rotateWebhook() at once gives one live URL; who lost the race is told to try again", async () => {
  await using server = await startServer();
  const { agents } = server.context;
  await agents.pair({ agentId: "eve" });
  const outcomes = await Promise.all(
    [1, 2, 3].map(() => agents.rotateWebhook("eve").then((token) => ({ token }), (error) => codeOf(error))),
  );
  const tokens = outcomes.flatMap((outcome) => typeof outcome === "string" ? [] : [outcome.token]);
  expect(tokens.length).toBe(1);
  expect(outcomes.filter((outcome) => outcome === "unavailable").length).toBe(2);
  expect((await agents.findByWebhookToken(tokens[0] ?? ""))?.agent_id).toBe("eve");
});

Deno.test("workspaceOfIncarnation() refuses an incarnation that is gone, whoever has the name now (report 5)", async () => {
  await using server = await startServer();
  const { agents } = server.context;
  const { agent } = await agents.pair({ agentId: "eve" });
  expect((await agents.workspaceOfIncarnation("eve", agent.incarnation)).home).toBe(server.home("eve"));
  await agents.remove("eve");
  await agents.pair({ agentId: "eve" });
  const refusal = await refusalOf(
    Promise.resolve().then(() => agents.workspaceOfIncarnation("eve", agent.incarnation)),
  );
  expect(codeOf(refusal)).toBe("revoked");
});
