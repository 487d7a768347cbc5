/** Reports 1, 2, 5, 7, 8, 19, S1: what a capability allows, how often, and for how long. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { sendRaw, sendTarget } from "../helpers/raw.ts";
import { bearer, fs, pattern, reasonOf, withServer } from "./support.ts";

Deno.test("report 1: HEAD is judged as STAT, and a refused HEAD never spends a single use", () =>
  withServer(async (server) => {
    const getOnly = await server.mint({ verbs: ["GET"], single_use: true });
    await Deno.writeFile(join(server.home("eve"), "a.pdf"), pattern(5000));
    const refused = await sendTarget(server.port, "HEAD", `/fs/a.pdf?cap=${getOnly.secret}`);
    expect(refused.status).toBe(403);
    expect(refused.body).toBe("");

    const both = await server.mint({ verbs: ["GET", "STAT"], single_use: true });
    for (let look = 0; look < 3; look++) {
      const seen = await sendTarget(server.port, "HEAD", `/fs/a.pdf?cap=${both.secret}`);
      expect([seen.status, seen.header("content-length"), seen.body]).toEqual([200, "5000", ""]);
    }
    for (const { secret } of [getOnly, both]) {
      expect((await fs(server, "GET", "a.pdf", secret)).status).toBe(200);
      expect((await fs(server, "GET", "a.pdf", secret)).reason).toBe("already_used");
    }
  }));

Deno.test("report 1: a HEAD spends a single use only when looking is all that it allows", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ verbs: ["STAT"], single_use: true });
    await Deno.writeFile(join(server.home("eve"), "a.pdf"), pattern(10));
    const head = () => sendTarget(server.port, "HEAD", `/fs/a.pdf?cap=${secret}`);
    expect((await head()).status).toBe(200);
    expect((await head()).status).toBe(401);
  }));

for (const size of [10, 300_000]) {
  Deno.test(`report 2: fifty GETs of ${size} bytes over fifty connections, exactly one winner`, () =>
    withServer(async (server) => {
      await server.admin("POST", "/agents", { agent_id: "eve" });
      const bytes = pattern(size);
      await Deno.writeFile(join(server.home("eve"), "once.bin"), bytes);
      for (let round = 0; round < 10; round++) {
        const { secret } = await server.mint({ verbs: ["GET"], single_use: true });
        const answers = await Promise.all(
          Array.from({ length: 50 }, () => sendTarget(server.port, "GET", "/fs/once.bin", bearer(secret))),
        );
        const winners = answers.filter(({ status }) => status === 200);
        const losers = answers.filter(({ status, body }) =>
          status === 401 && reasonOf(body) === "already_used"
        );
        expect([winners.length, losers.length]).toEqual([1, 49]);
        expect(winners[0]?.body.length).toBe(size);
      }
    }));
}

Deno.test("report 5: an agent made again under the old name does not revive old secrets, keys and webhooks", () =>
  withServer(async (server) => {
    const pair = () => server.admin("POST", "/agents", { agent_id: "eve", key: true, webhook: true });
    const first = (await pair()).body;
    const used = await server.mint({});
    const unused = await server.mint({});
    const once = await server.mint({ single_use: true });
    expect((await fs(server, "PUT", "a.txt", used.secret, { body: "kept" })).status).toBe(201);

    const gone = await server.admin("DELETE", "/agents/eve");
    expect(gone.body).toMatchObject({ deleted: true, revoked_capabilities: 3 });
    const between = await fs(server, "GET", "a.txt", used.secret);
    expect([between.status, between.reason]).toEqual([401, "revoked"]);
    const second = (await pair()).body;
    expect(second.created).toBe(true);

    for (const { secret } of [used, unused, once]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        const answer = await fs(server, method, "a.txt", secret, method === "PUT" ? { body: "lost" } : {});
        expect([method, answer.status, answer.reason]).toEqual([method, 401, "revoked"]);
      }
    }
    const byOldKey = await server.fetch("/events", { headers: bearer(String(first.agent_key)) });
    expect([byOldKey.status, reasonOf(await byOldKey.text())]).toEqual([401, "unknown_token"]);
    expect(second.webhook_url === first.webhook_url).toBe(false);
    const byOldHook = await fetch(String(first.webhook_url), { method: "POST", body: "hello" });
    expect([byOldHook.status, reasonOf(await byOldHook.text())]).toEqual([401, "unknown_token"]);
    expect(await Deno.readTextFile(join(server.home("eve"), "a.txt"))).toBe("kept");
  }));

Deno.test("report 7: the verb that is checked is the verb that is done, whatever a header or query says", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ verbs: ["STAT"] });
    await Deno.writeTextFile(join(server.home("eve"), "a.txt"), "private bytes");
    const tricks: Record<string, string>[] = [
      {},
      { "x-http-method-override": "HEAD" },
      { "x-http-method": "HEAD" },
      { "x-method-override": "HEAD" },
      { "x-original-method": "HEAD" },
    ];
    for (const headers of tricks) {
      for (const method of ["GET", "DELETE"]) {
        const answer = await fs(server, method, "a.txt?_method=HEAD", secret, { headers });
        expect([answer.status, answer.reason]).toEqual([403, "verb_not_allowed"]);
        expect(answer.text).not.toContain("private");
      }
      const head = await fs(server, "HEAD", "a.txt", secret, {
        headers: { "x-http-method-override": "GET" },
      });
      expect([head.status, head.text]).toEqual([200, ""]);
    }
    const withBody = await sendRaw(
      server.port,
      `HEAD /fs/a.txt?cap=${secret} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n` +
        "content-length: 5\r\nconnection: close\r\n\r\nhello",
    );
    expect([withBody.status, withBody.body]).toEqual([200, ""]);
    for (const method of ["POST", "PATCH", "OPTIONS", "PROPFIND", "MKCOL", "get"]) {
      const answer = await sendTarget(server.port, method, "/fs/a.txt", bearer(secret));
      expect([method, answer.status]).toEqual([method, 405]);
      expect(answer.header("allow")).toBe("GET, HEAD, PUT, DELETE");
    }
    expect(await Deno.readTextFile(join(server.home("eve"), "a.txt"))).toBe("private bytes");
  }));

Deno.test("report 8: a grant on one file opens none of its neighbours", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ path_prefix: "out/report.pdf" });
    const folder = join(server.home("eve"), "out");
    await Deno.mkdir(folder);
    const neighbours = ["report.pdf.bak", "Report.pdf", "report.pdf ", "report", "report.pd", "REPORT.PDF"];
    for (const name of ["report.pdf", ...neighbours]) await Deno.writeTextFile(join(folder, name), name);
    expect((await fs(server, "GET", "out/report.pdf", secret)).text).toBe("report.pdf");
    for (const name of [...neighbours, "", "report.pdfx", "report%2epdf"]) {
      const path = encodeURIComponent(name);
      for (const method of ["GET", "PUT", "DELETE"]) {
        const answer = await fs(server, method, `out/${path}`, secret, method === "PUT" ? { body: "x" } : {});
        expect([method, name, answer.status, answer.reason]).toEqual([
          method,
          name,
          403,
          "path_outside_scope",
        ]);
      }
      expect((await fs(server, "HEAD", `out/${path}`, secret)).status).toBe(403);
    }
    for (const method of ["GET", "PUT", "DELETE"]) {
      const inside = await fs(
        server,
        method,
        "out/report.pdf/x",
        secret,
        method === "PUT" ? { body: "x" } : {},
      );
      expect([method, inside.status, inside.reason]).toEqual([method, 409, "parent_is_file"]);
    }
    for (const name of neighbours) expect(await Deno.readTextFile(join(folder, name))).toBe(name);
  }));

Deno.test("report 19: a grant on a folder does not reach its siblings", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({ path_prefix: "in/discord", verbs: ["PUT"] });
    const rows: [string, number, string | undefined][] = [
      ["in/discord/x", 201, undefined],
      ["in/discord_evil/x", 403, "path_outside_scope"],
      ["in/discord./x", 403, "path_outside_scope"],
      ["in/discord%2e/x", 403, "path_outside_scope"],
      ["in/discord%20/x", 403, "path_outside_scope"],
      ["in/Discord/x", 403, "path_outside_scope"],
      ["in/discor", 403, "path_outside_scope"],
      ["in", 403, "path_outside_scope"],
      ["in/discord/../slack/x", 400, "invalid_path"],
      ["in/discord/%2e%2e/slack/x", 400, "invalid_path"],
      ["in/discord%2f..%2fslack/x", 400, "invalid_path"],
    ];
    for (const [path, status, reason] of rows) {
      const answer = await sendRaw(
        server.port,
        `PUT /fs/${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nauthorization: Bearer ${secret}\r\n` +
          "content-length: 1\r\nconnection: close\r\n\r\nx",
      );
      expect([path, answer.status, reasonOf(answer.body)]).toEqual([path, status, reason]);
    }
    const made = await Array.fromAsync(Deno.readDir(join(server.home("eve"), "in")), ({ name }) => name);
    expect(made).toEqual(["discord"]);
  }));

Deno.test("report S1: a refusal on a missing file or a folder spends no single use", () =>
  withServer(async (server) => {
    const home = () => server.home("eve");
    const { secret } = await server.mint({ single_use: true });
    await Deno.mkdir(join(home(), "folder"));
    const refusals: [string, string, string, Record<string, string>, number][] = [
      ["GET", "later.txt", "missing", {}, 404],
      ["GET", "folder", "folder", {}, 409],
      ["DELETE", "folder", "folder", {}, 409],
      ["PUT", "folder", "folder", {}, 409],
      ["PUT", "later.txt", "condition", { "if-match": '"none"' }, 412],
      ["GET", "later.txt", "link preview", { "sec-purpose": "prefetch" }, 403],
      ["GET", "../x", "illegal", {}, 400],
    ];
    for (const [method, path, why, headers, status] of refusals) {
      const init = method === "PUT" ? { headers, body: "x" } : { headers };
      const target = path.startsWith("..") ? "%2e%2e%2fx" : path;
      expect([why, (await fs(server, method, target, secret, init)).status]).toEqual([why, status]);
    }
    const nothing = await fs(server, "DELETE", "later.txt", secret);
    expect([nothing.status, JSON.parse(nothing.text).existed]).toEqual([200, false]);

    await Deno.writeTextFile(join(home(), "later.txt"), "here now");
    const now = await fs(server, "GET", "later.txt", secret);
    expect([now.status, now.text]).toEqual([200, "here now"]);
    expect((await fs(server, "GET", "later.txt", secret)).reason).toBe("already_used");
  }));
