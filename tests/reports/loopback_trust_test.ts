/** Report 49: no web page reaches the local server by any name, and the operator's own programs do. */
import { expect } from "../helpers/expect.ts";
import { sendTarget } from "../helpers/raw.ts";
import { bearer, reasonOf, withServer } from "./support.ts";

const CONTROL: [string, string][] = [
  ["GET", "/agents"],
  ["POST", "/agents"],
  ["GET", "/agents/eve"],
  ["DELETE", "/agents/eve"],
  ["POST", "/agents/eve/key"],
  ["GET", "/agents/eve/webhook"],
  ["GET", "/capabilities"],
  ["POST", "/capabilities"],
  ["DELETE", "/capabilities/cap_x"],
  ["GET", "/events"],
  ["GET", "/events/stream"],
  ["POST", "/events/evt_x/ack"],
];

/** What a page makes its browser send, and the refusal of it. */
const PAGES: [Record<string, string>, string][] = [
  [{ host: "evil.example" }, "host_not_allowed"],
  [{ host: "evil.example:3923" }, "host_not_allowed"],
  [{ host: "127.0.0.1.evil.example" }, "host_not_allowed"],
  [{ host: "localhost.evil.example" }, "host_not_allowed"],
  [{ origin: "http://evil.example" }, "cross_site"],
  [{ origin: "null" }, "cross_site"],
  [{ origin: "http://127.0.0.1:1" }, "cross_site"],
  [{ origin: "http://localhost.evil.example" }, "cross_site"],
  [{ "sec-fetch-site": "cross-site" }, "cross_site"],
  [{ "sec-fetch-site": "same-site" }, "cross_site"],
  [{ host: "evil.example", origin: "http://evil.example" }, "cross_site"],
  [{ host: "evil.example", "sec-fetch-site": "same-origin" }, "host_not_allowed"],
];

Deno.test("report 49: a page's request to a control route is 403 and changes nothing, with no CORS header", () =>
  withServer(async (server) => {
    await server.admin("POST", "/agents", { agent_id: "eve" });
    for (const [headers, reason] of PAGES) {
      for (const [method, path] of CONTROL) {
        const body: Record<string, string> = method === "POST"
          ? { "content-length": "0", "content-type": "text/plain" }
          : {};
        const answer = await sendTarget(server.port, method, path, { ...body, ...headers });
        expect([headers, path, answer.status, reasonOf(answer.body)]).toEqual([headers, path, 403, reason]);
        expect(answer.head).not.toMatch(/access-control-/i);
      }
    }
    expect((await server.admin("GET", "/agents")).body.agents).toHaveLength(1);
    expect((await server.admin("GET", "/capabilities")).body.capabilities).toEqual([]);
  }));

Deno.test("report 49: a token in a page's hands does not help where the page has no business", () =>
  withServer(async (server) => {
    const token = bearer(server.adminToken);
    for (const [headers] of PAGES.filter(([headers]) => "origin" in headers || "sec-fetch-site" in headers)) {
      const answer = await sendTarget(server.port, "GET", "/agents", { ...headers, ...token });
      expect([headers, answer.status]).toEqual([headers, 403]);
    }
    // A program with a valid token may call by any name; with a wrong one it may not.
    const program = await sendTarget(server.port, "GET", "/agents", { host: "string.example", ...token });
    expect(program.status).toBe(200);
    const guess = await sendTarget(server.port, "GET", "/agents", {
      host: "string.example",
      ...bearer(`adm_${"x".repeat(43)}`),
    });
    expect(guess.status).toBe(401);
  }));

Deno.test("report 49: names on the list and the server's own pages pass", () =>
  withServer(async (server) => {
    const token = bearer(server.adminToken);
    const rows: Record<string, string>[] = [
      { origin: `http://127.0.0.1:${server.port}`, "sec-fetch-site": "same-origin" },
      { host: "inside.example", origin: "http://inside.example" },
      { "sec-fetch-site": "none" },
    ];
    for (const headers of rows) {
      const answer = await sendTarget(server.port, "GET", "/agents", { ...headers, ...token });
      expect([headers, answer.status]).toEqual([headers, 200]);
    }
  }, { flags: { allowedHost: ["inside.example"] } }));

Deno.test("report 49: a presigned link opens from any page, and only for what it grants", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ verbs: ["GET"] });
    await Deno.writeTextFile(`${server.home("eve")}/a.txt`, "shared");
    for (const [headers] of PAGES) {
      const opened = await sendTarget(server.port, "GET", `/fs/a.txt?cap=${secret}`, headers);
      expect([headers, opened.status, opened.body]).toEqual([headers, 200, "shared"]);
      expect(opened.head).not.toMatch(/access-control-/i);
      expect((await sendTarget(server.port, "GET", "/fs/a.txt", headers)).status).toBe(401);
    }
  }));
