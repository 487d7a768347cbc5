/** Report 56: pages of listed origins move bytes with a capability alone; nobody else's do, and nothing does by default. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { type RawResponse, sendTarget } from "../helpers/raw.ts";
import { testIf } from "../helpers/skip.ts";
import { BROWSER, NO_BROWSER, openPage, startSite } from "./browser.ts";
import { bearer, fs, reasonOf, withServer } from "./support.ts";

const ORIGIN = "https://app.example";
const OPTIONS = { flags: { corsOrigin: [ORIGIN, "http://localhost:5173"] } };

function preflight(port: number, target: string, origin = ORIGIN, method = "PUT"): Promise<RawResponse> {
  return sendTarget(port, "OPTIONS", target, {
    origin,
    "access-control-request-method": method,
    "access-control-request-headers": "content-type, if-match",
  });
}

/** All that an answer says it varies by, in lower case. */
function varyOf(answer: RawResponse): string {
  return answer.head.split("\r\n").filter((line) => /^vary:/i.test(line)).join().toLowerCase();
}

function corsHeaders(answer: RawResponse): string[] {
  return answer.head.split("\r\n").filter((line) => /^access-control-/i.test(line));
}

Deno.test("report 56: by default a preflight is 405 and no answer has a CORS header", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const asked = await preflight(server.port, `/fs/x?cap=${secret}`);
    expect([asked.status, reasonOf(asked.body)]).toEqual([405, "method_not_allowed"]);
    expect(corsHeaders(asked)).toEqual([]);
    const put = await sendTarget(server.port, "PUT", `/fs/x?cap=${secret}`, {
      origin: ORIGIN,
      "content-length": "0",
    });
    expect(put.status).toBe(201);
    expect(corsHeaders(put)).toEqual([]);
  }));

Deno.test("report 56: a listed origin's preflight needs no token, and its answers show tag, length and range", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    for (const target of ["/fs/x", "/fs/in/deep/y.txt", "/fs/x?cap=caps_wrong"]) {
      for (const method of ["PUT", "GET", "DELETE"]) {
        const asked = await preflight(server.port, target, ORIGIN, method);
        expect([target, asked.status]).toEqual([target, 204]);
        expect(asked.header("access-control-allow-origin")).toBe(ORIGIN);
        expect(asked.header("access-control-allow-methods")).toContain(method);
        const allowed = asked.header("access-control-allow-headers")?.toLowerCase() ?? "";
        for (const name of ["authorization", "content-type", "if-match", "if-none-match", "range"]) {
          expect(allowed).toContain(name);
        }
        expect(varyOf(asked)).toContain("origin");
        expect(asked.header("access-control-allow-credentials")).toBeUndefined();
      }
    }
    const link = `/fs/x?cap=${secret}`;
    const answers = [
      await sendTarget(server.port, "PUT", link, { origin: ORIGIN, "content-length": "0" }),
      await sendTarget(server.port, "GET", link, { origin: ORIGIN }),
      await sendTarget(server.port, "HEAD", link, { origin: ORIGIN }),
      await sendTarget(server.port, "GET", "/fs/missing?cap=caps_wrong", { origin: ORIGIN }),
      await sendTarget(server.port, "GET", `/fs/missing?cap=${secret}`, { origin: ORIGIN }),
      await sendTarget(server.port, "PATCH", link, { origin: ORIGIN, "content-length": "0" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 401, 404, 405]);
    for (const answer of answers) {
      expect(answer.header("access-control-allow-origin")).toBe(ORIGIN);
      const exposed = answer.header("access-control-expose-headers")?.toLowerCase() ?? "";
      for (const name of ["etag", "content-length", "content-range", "retry-after"]) {
        expect(exposed).toContain(name);
      }
      expect(varyOf(answer)).toContain("origin");
    }
  }, OPTIONS));

Deno.test("report 56: an origin that is not listed gets no permission, in any spelling", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const origins = [
      "https://evil.example",
      "null",
      "https://app.example.evil.example",
      "http://app.example",
      "https://app.example:444",
      "https://APP.example.",
      "*",
      "",
    ];
    for (const origin of origins) {
      for (
        const answer of [
          await preflight(server.port, "/fs/x", origin),
          await sendTarget(server.port, "GET", `/fs/x?cap=${secret}`, { origin }),
        ]
      ) {
        expect([origin, corsHeaders(answer).filter((line) => /allow-origin/i.test(line))]).toEqual([
          origin,
          [],
        ]);
      }
    }
  }, OPTIONS));

Deno.test("reports 49, 56: control routes have no CORS even for a listed origin", () =>
  withServer(async (server) => {
    for (const path of ["/agents", "/capabilities", "/events", "/describe", "/health"]) {
      const asked = await preflight(server.port, path, ORIGIN, "POST");
      expect([path, asked.status, corsHeaders(asked)]).toEqual([path, 405, []]);
      const got = await sendTarget(server.port, "GET", path, {
        origin: ORIGIN,
        ...bearer(server.adminToken),
      });
      expect([path, corsHeaders(got)]).toEqual([path, []]);
    }
  }, OPTIONS));

testIf(
  BROWSER !== undefined,
  NO_BROWSER,
  "report 56: a page uploads by a presigned link in a real browser, and reads the tag, only where it is listed",
  async () => {
    const pages: Record<string, string> = {};
    await using site = startSite(pages);
    await withServer(async (server) => {
      const { secret } = await server.mint({});
      const link = `${server.url}/fs/up.txt?cap=${secret}`;
      pages["/upload"] = `<!doctype html><p id="out">nothing</p><script>
        fetch(${
        JSON.stringify(link)
      }, { method: "PUT", body: "from a page", headers: { "content-type": "text/plain" } })
          .then((r) => document.getElementById("out").textContent = "put " + r.status + " " + r.headers.get("etag"),
            (e) => document.getElementById("out").textContent = "failed " + e.name);
      </script>`;
      const dom = await openPage(`${site.origin}/upload`);
      const tag = (await fs(server, "HEAD", "up.txt", secret)).headers.get("etag");
      expect(dom).toContain(`put 201 ${tag}`);
      expect(await Deno.readTextFile(join(server.home("eve"), "up.txt"))).toBe("from a page");
    }, { flags: { corsOrigin: [site.origin] } });

    await withServer(async (server) => {
      const { secret } = await server.mint({});
      pages["/upload"] = (pages["/upload"] ?? "").replace(
        /http:[^"]*/,
        `${server.url}/fs/up.txt?cap=${secret}`,
      );
      expect(await openPage(`${site.origin}/upload`)).toContain("failed TypeError");
      expect((await fs(server, "HEAD", "up.txt", secret)).status).toBe(404);
    });
  },
);
