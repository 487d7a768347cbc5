/** Report 22: an agent's name is one plain segment, or it is refused before anything is made. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { namesIn, reasonOf, snapshot, withServer } from "./support.ts";

const REFUSED: unknown[] = [
  "..",
  ".",
  "",
  "a/b",
  "a\\b",
  "a\u0000",
  "\u0000",
  "CON",
  "-rf",
  "x".repeat(300),
  "x".repeat(65),
  "Eve",
  "EVE",
  "eve ",
  " eve",
  "eve\n",
  "a..b",
  "a..",
  "_a",
  ".a",
  "~",
  "é",
  "еve", // begins with a Cyrillic letter
  "eve%2f..",
  "../eve",
  "/etc",
  "*",
  "eve;rm",
  "'; DROP TABLE agents; --",
  "__proto__",
  null,
  1,
  true,
  {},
  [],
  ["eve2"],
];

Deno.test("report 22: a name outside the pattern is 400, and neither disk nor records change", () =>
  withServer(async (server) => {
    await server.admin("POST", "/agents", { agent_id: "eve" });
    const workspaces = join(server.dataFolder, "workspaces");
    const before = await snapshot(workspaces);
    const folderBefore = await namesIn(server.dataFolder);
    for (const agentId of REFUSED) {
      const paired = await server.admin("POST", "/agents", {
        agent_id: agentId,
        key: true,
        capability: { path_prefix: "", verbs: ["GET"], ttl_ms: 1000 },
      });
      expect([agentId, paired.status, reasonOf(JSON.stringify(paired.body))]).toEqual([
        agentId,
        400,
        "invalid_request",
      ]);
      expect(JSON.stringify(paired.body)).not.toMatch(/agk_|caps_/);
      if (typeof agentId === "string") expect(paired.body.error).toContain("a-z, 0-9");
      const minted = await server.admin("POST", "/capabilities", {
        agent_id: agentId,
        path_prefix: "",
        verbs: ["GET"],
        ttl_ms: 1000,
      });
      expect([agentId, minted.status]).toEqual([agentId, 400]);
    }
    expect(await snapshot(workspaces)).toEqual(before);
    expect(await namesIn(server.dataFolder)).toEqual(folderBefore);
    expect((await server.context.agents.list()).map(({ agent_id: id }) => id)).toEqual(["eve"]);
    const count = await server.context.database.engine.read({
      sql: "SELECT count(*) AS n FROM capabilities",
      parameters: [],
    });
    expect(count[0]?.n).toBe(0);
  }));

Deno.test("report 22: names inside the pattern have homes of their own", () =>
  withServer(async (server) => {
    const names = ["0", "a", "a.b", "a_b", "a-b", "con", "x".repeat(64), "a."];
    for (const agentId of names) {
      expect((await server.admin("POST", "/agents", { agent_id: agentId })).body).toMatchObject({
        created: true,
      });
    }
    expect(await namesIn(join(server.dataFolder, "workspaces"))).toEqual(names.toSorted());
  }));
