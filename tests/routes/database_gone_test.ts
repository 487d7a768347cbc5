/** A database that is busy or gone is 503 with Retry-After, never a hang or a wrong 401 (reports 44, M9). */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { startProgram } from "../store/database/programs/program.ts";

async function reasonOf(response: Response): Promise<[number, unknown, boolean]> {
  const { reason } = await response.json();
  return [response.status, reason, response.headers.has("retry-after")];
}

Deno.test("every plane answers 503 while the database is gone, and a wrong secret is no 401", async () => {
  await using server = await startServer();
  const known = await server.mint({});
  const unread = await server.mint({ path_prefix: "b" });
  const put = await server.fetch(`/fs/a?cap=${known.secret}`, { method: "PUT", body: "x" });
  expect(put.status).toBe(201);
  await put.body?.cancel();
  await server.context.audit.flush();
  await server.context.database.close();

  const headers = { authorization: `Bearer ${server.adminToken}` };
  const refused = [
    server.fetch(`/fs/b/x?cap=${unread.secret}`),
    server.fetch(`/fs/b/x?cap=caps_${"x".repeat(43)}`),
    server.fetch("/agents", { headers }),
    server.fetch("/capabilities", { headers }),
    server.fetch(`/capabilities/${known.token_id}`, { method: "DELETE", headers }),
    server.fetch(`/webhook/${"x".repeat(43)}`, { method: "POST", body: "x" }),
  ];
  for (const response of await Promise.all(refused)) {
    expect(await reasonOf(response)).toEqual([503, "unavailable", true]);
  }
  const health = await server.fetch("/health");
  expect([health.status, (await health.json()).ok]).toEqual([503, false]);
  expect((await (await server.fetch("/describe")).json()).name).toBe("string");
  expect(await (await server.fetch(`/fs/a?cap=${known.secret}`)).text(), "what is remembered").toBe("x");
});

Deno.test("a mint is 503 while another process holds the write lock, and everything works after (report 44)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const holder = startProgram("lock_holder.ts", [join(server.dataFolder, "string.db")]);
  await holder.say("hold");
  expect(await holder.line()).toBe("hold");
  const mint = () =>
    server.admin("POST", "/capabilities", {
      agent_id: "eve",
      path_prefix: "",
      verbs: ["GET"],
      ttl_ms: 60_000,
    });

  const begun = performance.now();
  const [first, second] = await Promise.all([mint(), mint()]);
  expect([first.status, first.body.reason, second.status]).toEqual([503, "unavailable", 503]);
  expect(performance.now() - begun).toBeLessThan(9_000);
  expect((await (await server.fetch(`/fs/none?cap=${secret}`)).json()).reason, "reads go on").toBe(
    "not_found",
  );

  await holder.say("release");
  expect(await holder.line()).toBe("release");
  expect(await holder.end()).toBe(0);
  for (let n = 0; n < 20; n++) expect((await mint()).status).toBe(201);
  expect((await (await server.fetch("/health")).json()).ok).toBe(true);
});
