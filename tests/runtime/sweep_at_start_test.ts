/** What an earlier server left in staging goes when the next one starts, whoever's workspace it lies in. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";

function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test("a start sweeps what dead servers staged, also in workspaces whose agent is gone (report 13)", async () => {
  const first = await startServer();
  await first.admin("POST", "/agents", { agent_id: "eve" });
  await first.stop();
  const staging = ["eve", "ghost"].map((agentId) => join(first.home(agentId), ".string/staging"));
  for (const folder of staging) {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(join(folder, "mk_gone.file"), "left over");
    await Deno.writeTextFile(join(folder, "not-ours"), "an agent's");
  }
  await Deno.writeTextFile(join(first.home("ghost"), "kept"), "of a gone agent");
  // What is no workspace stops nothing.
  await Deno.writeTextFile(join(first.dataFolder, "workspaces/file"), "no folder");
  await Deno.mkdir(join(first.dataFolder, "workspaces/not a name"));
  await Deno.mkdir(join(first.dataFolder, "workspaces/empty"));

  await using second = await startServer({ dataFolder: first.dataFolder });
  for (const folder of staging) expect(namesIn(folder)).toEqual(["not-ours"]);
  expect(namesIn(second.home("ghost"))).toEqual([".string", "kept"]);
  expect(namesIn(second.home("empty"))).toEqual([]);
});
