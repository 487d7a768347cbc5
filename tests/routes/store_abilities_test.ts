/** A store that lacks an ability: absent from `/describe`, and 501 when asked for, never ignored. */
import type { WorkspaceStore } from "../../store/workspace/types.ts";
import { Files } from "../../runtime/files.ts";
import { systemClock } from "../../base/clock.ts";
import { serveFile } from "../../routes/fs.ts";
import { toProblem } from "../../routes/problem.ts";
import { silentLog } from "../../base/log.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";

/** The server's own store, without versions. */
function withoutVersions(store: WorkspaceStore): WorkspaceStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "abilities") return { ...target.abilities, conditionalRequests: false };
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

Deno.test("conditional requests are 501 where the store has no versions (SYS-FS-10)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  await (await server.fetch(`/fs/a.txt?cap=${secret}`, { method: "PUT", body: "old" })).body?.cancel();
  const { capabilities, agents, audit, store, identity } = server.context;
  const files = new Files({
    capabilities,
    agents,
    audit,
    store: withoutVersions(store),
    clock: systemClock,
    maxBytes: 1000,
  });
  const ask = async (method: string, headers: Record<string, string>) => {
    const request = new Request(`${server.url}/fs/a.txt`, {
      method,
      headers: { authorization: `Bearer ${secret}`, ...headers },
      ...(method === "PUT" ? { body: "new" } : {}),
    });
    const target = { path: "/fs/a.txt", query: "", host: "127.0.0.1" };
    const facts = {
      peer: { address: "127.0.0.1", port: 1 },
      serverPort: server.port,
      signal: request.signal,
      header: (name: string) => request.headers.get(name),
    };
    try {
      return await serveFile(request, target, facts, {
        files,
        refuseUnknown: identity.refuseUnknown.bind(identity),
      });
    } catch (error) {
      return toProblem(error, { method, route: "/fs/{path}" }, silentLog);
    }
  };
  const rows: [string, Record<string, string>][] = [
    ["GET", { "if-none-match": '"x"' }],
    ["GET", { "if-modified-since": "Mon, 30 Nov 2026 00:00:00 GMT" }],
    ["GET", { "if-range": '"x"', range: "bytes=0-1" }],
    ["HEAD", { "if-match": '"x"' }],
    ["PUT", { "if-match": "*" }],
    ["PUT", { "if-none-match": "*" }],
    ["DELETE", { "if-match": "*" }],
  ];
  for (const [method, headers] of rows) {
    const response = await ask(method, headers);
    expect(response.status, `${method} ${JSON.stringify(headers)}`).toBe(501);
    await response.body?.cancel();
  }
  expect(await Deno.readTextFile(`${server.home("eve")}/a.txt`)).toBe("old");
  const plain = await ask("GET", {});
  expect(plain.status).toBe(200);
  expect(await plain.text()).toBe("old");
});
