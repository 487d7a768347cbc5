/** The `Host` header: one, well-formed, and the one that the target names, on every plane; else 400. */
import { expect } from "../helpers/expect.ts";
import { sendRaw } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { HAS_CURL, NEEDS_CURL, runTool } from "../helpers/tools.ts";
import { agentIds, reasonIn } from "./support.ts";

/** One path of each plane. */
const PATHS = [
  "/agents",
  "/capabilities",
  "/events",
  "/fs/f",
  `/webhook/${"x".repeat(43)}`,
  "/describe",
  "/health",
  "/",
  "/nowhere",
];

/** What follows the method in the request line, with PATH for the path, and the header lines. */
const BAD: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  "none": ["PATH", []],
  "two that differ": ["PATH", ["Host: localhost", "Host: evil.example"]],
  "two that agree": ["PATH", ["Host: localhost", "Host: localhost"]],
  "an empty one": ["PATH", ["Host:"]],
  "blanks": ["PATH", ["Host:    "]],
  "a user": ["PATH", ["Host: user@localhost"]],
  "a user and a word": ["PATH", ["Host: user:word@localhost"]],
  "a path": ["PATH", ["Host: localhost/agents"]],
  "a query": ["PATH", ["Host: localhost?x"]],
  "a fragment": ["PATH", ["Host: localhost#x"]],
  "a scheme": ["PATH", ["Host: http://localhost"]],
  "two names": ["PATH", ["Host: localhost evil.example"]],
  "a list": ["PATH", ["Host: localhost, evil.example"]],
  "no port that is one": ["PATH", ["Host: localhost:http"]],
  "a long port": ["PATH", ["Host: localhost:1234567"]],
  "half a bracket": ["PATH", ["Host: [::1"]],
  "a zone": ["PATH", ["Host: [::1%25lo]"]],
  "a bare IPv6 address": ["PATH", ["Host: ::1"]],
  "bytes beyond ASCII": ["PATH", ["Host: localh\u00f6st"]],
  "a folded line": ["PATH", ["Host: localhost", " evil.example"]],
  "a blank before the colon": ["PATH", ["Host : localhost"]],
  "a target of another host": ["http://evil.examplePATH", ["Host: localhost"]],
  "a target of another port": ["http://localhost:81PATH", ["Host: localhost"]],
  "a target with a user": ["http://user@localhostPATH", ["Host: localhost"]],
  "a target with a host, no header": ["http://localhostPATH", []],
  "a target of this host, a foreign header": ["http://localhostPATH", ["Host: evil.example"]],
};

async function send(server: TestServer, target: string, lines: readonly string[], version = "1.1") {
  const all = [...lines, "Connection: close"].map((line) => `${line}\r\n`).join("");
  return await sendRaw(server.port, `GET ${target} HTTP/${version}\r\n${all}\r\n`);
}

Deno.test("no Host, two, or one that is no host is 400 on every plane (SYS-ERR-02 bad_host)", async () => {
  await using server = await startServer();
  await server.admin("POST", "/agents", { agent_id: "eve" });
  for (const [name, [target, lines]] of Object.entries(BAD)) {
    for (const path of PATHS) {
      for (const version of ["1.1", "1.0"]) {
        const { status, body } = await send(server, target.replace("PATH", path), lines, version);
        expect([name, path, version, status]).toEqual([name, path, version, 400]);
        // What the runtime refuses before us has no body.
        expect([name, body === "" ? "bad_host" : reasonIn(body)]).toEqual([name, "bad_host"]);
      }
    }
  }
});

Deno.test("one Host that agrees with the target is served, in either form of the target", async () => {
  await using server = await startServer();
  for (
    const [target, host] of [
      ["/health", "localhost"],
      ["/health", "any.example:1"],
      ["http://localhost/health", "localhost"],
      ["http://LOCALHOST/health", "localhost"],
      ["http://any.example:1/health", "any.example:1"],
      ["http://[::1]:80/health", "[::1]:80"],
    ] as const
  ) {
    for (const version of ["1.1", "1.0"]) {
      expect([target, host, (await send(server, target, [`Host: ${host}`], version)).status]).toEqual([
        target,
        host,
        200,
      ]);
    }
  }
});

Deno.test("an upgrade changes nothing about who asks", async () => {
  await using server = await startServer({ flags: { trustLoopback: "false" } });
  const upgrades = [
    ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
    ["Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"],
  ];
  for (const lines of upgrades) {
    const head = ["Host: localhost", "Connection: Upgrade, HTTP2-Settings, close", ...lines].join("\r\n");
    const { status } = await sendRaw(server.port, `GET /agents HTTP/1.1\r\n${head}\r\n\r\n`);
    expect([lines[0], status]).toEqual([lines[0], 401]);
  }
});

testIf(
  HAS_CURL,
  NEEDS_CURL,
  "HTTP/2 without TLS has no Host and is 400, with whatever credential",
  async () => {
    await using server = await startServer();
    for (
      const more of [[], ["-H", `Authorization: Bearer ${server.adminToken}`], ["-H", "Host: evil.example"]]
    ) {
      const args = ["--http2-prior-knowledge", "-d", '{"agent_id":"evil"}', ...more, `${server.url}/agents`];
      const { out } = await runTool(["curl", "-sS", "-w", "\n%{http_code}", ...args]);
      expect([more, out.split("\n").at(-1), reasonIn(out)]).toEqual([more, "400", "bad_host"]);
    }
    expect(await agentIds(server)).toEqual([]);
  },
);
