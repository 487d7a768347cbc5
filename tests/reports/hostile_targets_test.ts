/** Reports 20, 23, 52, M1, M4: targets as no ordinary client sends them. One reading, no 500, no way around a guard. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { sendRaw, sendTarget } from "../helpers/raw.ts";
import type { TestServer } from "../helpers/server.ts";
import { bearer, namesIn, reasonOf, withServer } from "./support.ts";

async function requireAlive(server: TestServer): Promise<void> {
  const health = await server.fetch("/health");
  await health.body?.cancel();
  expect(health.status).toBe(200);
}

/** Targets below `/fs/` that no capability could ever allow. */
const ILLEGAL = [
  "/fs/in/%2e%2e/%2e%2e/etc/passwd",
  "/fs/in/..%2f..%2fetc/passwd",
  "/fs/in/../../etc/passwd",
  "/fs/../agents",
  "/fs/..",
  "/fs/%2E%2E",
  "/fs/.%2e/x",
  "/fs/%2e./x",
  "/fs/a%2fb",
  "/fs/a%2Fb",
  "/fs/a\\b",
  "/fs/a%5cb",
  "/fs/..%5c..%5cx",
  "/fs/..\\..\\x",
  "/fs/a%00b",
  "/fs/%00",
  "/fs/a.txt%00.png",
  "/fs/%",
  "/fs/%zz",
  "/fs/%2",
  "/fs/a%",
  "/fs/%u002e%u002e/x",
  "/fs/%C0%80",
  "/fs/%C0%AE%C0%AE/x",
  "/fs/%E0%A4%A",
  "/fs/%E0%A4",
  "/fs/%FF",
  "/fs/%ED%A0%80",
  "/fs/%F4%90%80%80",
];

Deno.test("reports 20, 23: what no capability could allow is 400 with a live one, 401 without, for every verb", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await Deno.mkdir(join(server.home("eve"), "in"));
    for (const target of ILLEGAL) {
      for (const method of ["GET", "PUT", "DELETE", "HEAD"]) {
        const headers: Record<string, string> = method === "PUT" ? { "content-length": "0" } : {};
        const allowed = await sendTarget(server.port, method, target, { ...bearer(secret), ...headers });
        expect([target, method, allowed.status]).toEqual([target, method, 400]);
        if (method !== "HEAD") expect([target, reasonOf(allowed.body)]).toEqual([target, "invalid_path"]);
        const nobody = await sendTarget(server.port, method, target, headers);
        expect([target, method, nobody.status]).toEqual([target, method, 401]);
        const unknown = await sendTarget(
          server.port,
          method,
          `${target}?cap=caps_${"x".repeat(43)}`,
          headers,
        );
        expect([target, method, unknown.status]).toEqual([target, method, 401]);
      }
    }
    expect(await namesIn(server.home("eve"))).toEqual([".string", "in"]);
    await requireAlive(server);
  }));

Deno.test("reports 20, 23: hostile targets outside /fs are 404 or 400 and reach nothing", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await Deno.mkdir(join(server.home("eve"), "in"));
    await Deno.writeTextFile(join(server.home("eve"), "in/x"), "private bytes");
    const targets = [
      "/docs/../../etc/passwd",
      "/docs/..%5c..%5cx",
      "/docs/%00",
      "/docs/%",
      "/docs/%zz",
      "/docs/%C0%80",
      "/%66s/in/x",
      "/f%73/in/x",
      "/FS/in/x",
      "//fs/in/x",
      "/./fs/in/x",
      "/x/../fs/in/x",
      "/fs%2fin/x",
      "\\fs\\in\\x",
      "/fs;/in/x",
      "/../../../../etc/passwd",
      "/%2e%2e/%2e%2e/etc/passwd",
      "/webhook/../fs/in/x",
      "/agents/..%2f..%2fcapabilities",
    ];
    for (const target of targets) {
      for (const headers of [bearer(secret), bearer(server.adminToken), {}]) {
        const answer = await sendTarget(server.port, "GET", target, headers as Record<string, string>);
        expect([target, [400, 401, 404].includes(answer.status)]).toEqual([target, true]);
        expect(answer.body).not.toContain("private");
        expect(answer.body).not.toContain("root:");
      }
    }
    await requireAlive(server);
  }));

Deno.test("report M1: equal spellings of a legal path are one path, for the policy and on disk", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ path_prefix: "a/b" });
    await Deno.mkdir(join(server.home("eve"), "a"));
    await Deno.writeTextFile(join(server.home("eve"), "a/b"), "one file");
    for (
      const path of ["a/b", "a//b", "a/./b", "./a/b", "a/b/", "/a/b", "%61/%62", "a/%2e/b", "a/b/.", "a/b//"]
    ) {
      const answer = await sendTarget(server.port, "GET", `/fs/${path}`, bearer(secret));
      expect([path, answer.status, answer.body]).toEqual([path, 200, "one file"]);
    }
    for (const path of ["a%252fb", "%2561/b", "a/%2562", "A/b", "a/b%20", "a;/b"]) {
      const answer = await sendTarget(server.port, "GET", `/fs/${path}`, bearer(secret));
      expect([path, answer.status]).toEqual([path, 403]);
    }
    for (const path of ["", "/", "./", "%2e"]) {
      const wide = await server.mint({});
      const answer = await sendTarget(server.port, "GET", `/fs/${path}`, bearer(wide.secret));
      expect([path, answer.status, reasonOf(answer.body)]).toEqual([path, 409, "is_directory"]);
    }
  }));

Deno.test("report M1: a double escape is decoded once", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const put = await server.fetch("/fs/%252e%252e", { method: "PUT", headers: bearer(secret), body: "x" });
    expect(await put.json()).toMatchObject({ path: "%2e%2e" });
    expect(await namesIn(server.home("eve"))).toEqual(["%2e%2e", ".string"]);
  }));

Deno.test("report 23: request lines and hosts that are no HTTP are 400 or closed, and the server goes on", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const host = `host: 127.0.0.1:${server.port}\r\nauthorization: Bearer ${secret}\r\nconnection: close\r\n`;
    const requests = [
      `GET /fs/a\0b HTTP/1.1\r\n${host}\r\n`,
      `GET /fs/a b HTTP/1.1\r\n${host}\r\n`,
      `GET /fs/\xff\xfe HTTP/1.1\r\n${host}\r\n`,
      `GET /fs/a#b HTTP/1.1\r\n${host}\r\n`,
      `GET fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET * HTTP/1.1\r\n${host}\r\n`,
      `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
      `CONNECT 127.0.0.1:80 HTTP/1.1\r\n${host}\r\n`,
      `CONNECT /fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET http://evil.example/fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET http:///fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET http://u:p@127.0.0.1:${server.port}/fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET https://127.0.0.1:${server.port}.evil.example/fs/a HTTP/1.1\r\n${host}\r\n`,
      `GET file:///etc/passwd HTTP/1.1\r\n${host}\r\n`,
      `GET /fs/a HTTP/1.1\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.1\r\nhost: a, b\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.1\r\nhost: a/b\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.1\r\nhost: a@b\r\nconnection: close\r\n\r\n`,
      `GET /fs/a HTTP/1.0\r\n\r\n`,
      `GET /fs/a HTTP/9.9\r\n${host}\r\n`,
      `GET /fs/${"a/".repeat(40_000)} HTTP/1.1\r\n${host}\r\n`,
      `PUT /fs/a HTTP/1.1\r\n${host}content-length: -1\r\n\r\n`,
      `PUT /fs/a HTTP/1.1\r\n${host}content-length: 1\r\ncontent-length: 2\r\n\r\nx`,
      `PUT /fs/a HTTP/1.1\r\n${host}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
    ];
    for (const request of requests) {
      const answer = await sendRaw(server.port, request);
      const line = request.slice(0, 60);
      // 0: closed without an answer.
      expect([line, [0, 400, 404, 405, 414, 431, 505].includes(answer.status)]).toEqual([line, true]);
      await requireAlive(server);
    }
    expect(await namesIn(server.home("eve"))).toEqual([".string"]);

    // How long a body is, said in two ways or in a way that nothing here decodes: none of them lands.
    const framings = [
      "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
      "transfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
      "transfer-encoding: xchunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
      "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ];
    for (const framing of framings) {
      const answer = await sendRaw(server.port, `PUT /fs/f HTTP/1.1\r\n${host}${framing}`);
      expect([framing, [0, 400].includes(answer.status)]).toEqual([framing, true]);
    }
    expect(await namesIn(server.home("eve"))).toEqual([".string"]);
    // In this order Deno 2.6 drops the length before anyone can see it; then the coding alone must count.
    const lengthLast = await sendRaw(
      server.port,
      `PUT /fs/f HTTP/1.1\r\n${host}transfer-encoding: chunked\r\ncontent-length: 30\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
    );
    expect([0, 400, 201]).toContain(lengthLast.status);
    if (lengthLast.status === 201) expect(await Deno.readTextFile(join(server.home("eve"), "f"))).toBe("x");
  }));

/** Other spellings of guarded routes. */
const SPELLINGS = [
  "//agents",
  "/agents/",
  "/AGENTS",
  "/Agents",
  "/./agents",
  "/%61gents",
  "/agents%2f",
  "/agents//",
  "/agents/.",
  "/x/../agents",
  "/agents;x=y",
  "/agents%00",
  "/agents%20",
  "/agents.",
  "/agents?",
  "/agents?x=/fs/",
  "/agents#",
  "/fs/../agents",
  "/fs/%2e%2e/agents",
  "\\agents",
  "/\\agents",
  "/agents\\",
  "/agents%3F",
  "/.//agents",
  "//capabilities",
  "/capabilities/",
  "/CAPABILITIES",
  "/%63apabilities",
  "/events/",
  "//events",
  "/EVENTS",
  "/openapi.json/../agents",
  "/health/../agents",
  "/describe/..%2fagents",
  "/%2fagents",
  "/agents/eve/",
  "//agents/eve",
  "/agents//eve",
  "/agents/eve/key/",
  "/agents/%2e%2e/agents",
]; // deno-fmt-ignore

Deno.test("report 52: no spelling of a guarded route reaches its handler unguarded", () =>
  withServer(async (server) => {
    await server.admin("POST", "/agents", { agent_id: "eve" });
    const absolute = SPELLINGS.slice(0, 8).concat("/agents").map((path) => `http://127.0.0.1:${server.port}${path}`);
    const callers: [string, Record<string, string>, number[]][] = [
      ["a page of another origin", { origin: "http://evil.example" }, [400, 401, 403, 404, 405]],
      ["a cross-site request", { "sec-fetch-site": "cross-site" }, [400, 401, 403, 404, 405]],
      ["a stranger behind a proxy", { "x-forwarded-for": "203.0.113.9" }, [400, 401, 404, 405]],
      ["a stranger with a wrong token", bearer(`adm_${"x".repeat(43)}`), [400, 401, 404, 405]],
    ];
    for (const [who, headers, allowed] of callers) {
      for (const target of [...SPELLINGS, ...absolute]) {
        for (const method of ["GET", "POST", "DELETE"]) {
          const answer = await sendTarget(server.port, method, target, {
            ...headers,
            ...(method === "POST" ? { "content-length": "0" } : {}),
          });
          expect([who, method, target, allowed.includes(answer.status) ? "refused" : answer.status]).toEqual([
            who,
            method,
            target,
            "refused",
          ]);
          expect(answer.body).not.toContain('"home"');
        }
      }
    }
    // For the operator each is the same route or nothing.
    for (const target of [...SPELLINGS, ...absolute]) {
      const answer = await sendTarget(server.port, "GET", target, bearer(server.adminToken));
      expect([target, [200, 400, 401, 404, 405].includes(answer.status)]).toEqual([target, true]);
      if (answer.status === 200) expect(target).toMatch(/\/agents\??[^/]*$|\/agents\?x=\/fs\/$/);
    }
    const named = await server.fetch("/agents/eve", { headers: bearer(server.adminToken) });
    expect((await named.json()).agent_id).toBe("eve");
  }));

Deno.test("report 52: an agent id in another spelling is nobody", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const admin = bearer(server.adminToken);
    for (
      const id of [
        "eve.",
        "eve%20",
        "%20eve",
        "EVE",
        "Eve",
        "eve%00",
        "eve%2e",
        "eve%2f",
        "ev%65%0a",
        "eve,",
        "%E0%A4%A",
      ]
    ) {
      const shown = await sendTarget(server.port, "GET", `/agents/${id}`, admin);
      expect([id, [400, 404].includes(shown.status)]).toEqual([id, true]);
      const key = await sendTarget(server.port, "POST", `/agents/${id}/key`, {
        ...admin,
        "content-length": "0",
      });
      expect([id, [400, 404].includes(key.status)]).toEqual([id, true]);
      const gone = await sendTarget(server.port, "DELETE", `/agents/${id}`, admin);
      expect([id, gone.status === 400 || gone.body.includes('"deleted":false')]).toEqual([id, true]);
    }
    const put = await server.fetch("/fs/a.txt", {
      method: "PUT",
      headers: bearer(secret),
      body: "still there",
    });
    await put.body?.cancel();
    expect(put.status).toBe(201);
  }));

Deno.test("report M4: a wrong method is 405 with Allow on every route, and 404 only where there is no route", () =>
  withServer(async (server) => {
    const rows: [string, string][] = [
      ["/fs/a", "GET, HEAD, PUT, DELETE"],
      ["/fs/", "GET, HEAD, PUT, DELETE"],
      ["/agents", "POST, GET, HEAD"],
      ["/agents/eve", "GET, HEAD, DELETE"],
      ["/agents/eve/key", "POST"],
      ["/agents/eve/webhook", "GET, HEAD, POST"],
      ["/capabilities", "POST, GET, HEAD"],
      ["/capabilities/cap_x", "DELETE"],
      ["/webhook/x", "POST"],
      ["/events", "GET, HEAD"],
      ["/events/evt_x/ack", "POST"],
      ["/describe", "GET, HEAD"],
      ["/health", "GET, HEAD"],
      ["/openapi.json", "GET, HEAD"],
      ["/", "GET, HEAD"],
    ];
    const methods = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY", "EXEC"];
    for (const [path, allow] of rows) {
      const allowed = allow.split(", ");
      for (const method of methods.filter((candidate) => !allowed.includes(candidate))) {
        const answer = await sendTarget(server.port, method, path, { "content-length": "0" });
        expect([method, path, answer.status]).toEqual([method, path, 405]);
        expect(reasonOf(answer.body)).toBe("method_not_allowed");
        expect((answer.header("allow") ?? "").split(", ").sort()).toEqual(allowed.toSorted());
      }
    }
    expect((await sendTarget(server.port, "PATCH", "/nowhere")).status).toBe(404);
  }));
