/** HEAD says what GET would say (report 26), and costs nothing (M3). */
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { placeFiles } from "./rows.ts";

/**
 * All headers but those of the connection and the moment. An older runtime adds «Vary: Accept-Encoding» to a text that
 * has a body, though `no-transform` keeps it from doing anything (M5).
 */
function lasting(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => !["date", "connection", "keep-alive"].includes(name))
      .map(([name, value]) => [name, name === "vary" ? value.replace(/,? ?Accept-Encoding/i, "") : value])
      .filter(([, value]) => value !== ""),
  );
}

for (const size of [0, 1, 5_000_000]) {
  Deno.test(`HEAD answers the headers of GET for a file of ${size} bytes (SYS-FS-03, report 26)`, async () => {
    await using server = await startServer();
    const { secret } = await server.mint({});
    placeFiles(server.home("eve"), { f: new Uint8Array(size) });
    const path = `/fs/f?cap=${secret}`;
    const head = await server.fetch(path, { method: "HEAD" });
    const get = await server.fetch(path);
    expect((await get.arrayBuffer()).byteLength).toBe(size);
    expect(await head.text()).toBe("");
    expect(lasting(head.headers)).toEqual(lasting(get.headers));
    expect(head.headers.get("content-length")).toBe(String(size));
  });
}

for (const path of ["/", "/describe", "/health", "/openapi.json", "/agents", "/capabilities"]) {
  Deno.test(`HEAD ${path} answers the headers of GET without a body (report 26)`, async () => {
    await using server = await startServer();
    const headers = { authorization: `Bearer ${server.adminToken}` };
    const head = await server.fetch(path, { method: "HEAD", headers });
    const get = await server.fetch(path, { headers });
    await get.body?.cancel();
    expect(await head.text()).toBe("");
    expect(head.status).toBe(200);
    expect(lasting(head.headers)).toEqual(lasting(get.headers));
  });
}

Deno.test("HEAD /events/stream answers and leaves no stream open (M3)", async () => {
  await using server = await startServer();
  await server.admin("POST", "/agents", { agent_id: "eve" });
  for (let n = 0; n < 5; n++) {
    const head = await server.fetch("/events/stream", {
      method: "HEAD",
      headers: { authorization: `Bearer ${server.adminToken}`, "x-agent-id": "eve" },
    });
    expect(head.status).toBe(200);
    expect(head.headers.get("content-type")).toBe("text/event-stream");
    expect(await head.text()).toBe("");
  }
  expect(server.context.events.streamCount).toBe(0);
});

testIf(
  Deno.build.os === "linux",
  "needs /proc",
  "HEAD of a large file opens nothing that stays open (M3)",
  async () => {
    await using server = await startServer();
    const { secret } = await server.mint({});
    placeFiles(server.home("eve"), { f: new Uint8Array(1_000_000) });
    const opened = () => {
      const files = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => {
        try {
          return Deno.readLinkSync(`/proc/self/fd/${name}`);
        } catch {
          return ""; // the descriptor of the listing itself
        }
      });
      return files.filter((file) => file.includes("/workspaces/eve/f")).length;
    };
    for (let n = 0; n < 20; n++) {
      await (await server.fetch(`/fs/f?cap=${secret}`, { method: "HEAD" })).text();
      const unchanged = await server.fetch(`/fs/f?cap=${secret}`, { headers: { "if-none-match": "*" } });
      expect(unchanged.status).toBe(304);
      await unchanged.text();
    }
    expect(opened()).toBe(0);
  },
);
