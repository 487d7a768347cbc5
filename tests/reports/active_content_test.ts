/** Report 28: what was uploaded never acts in a browser, and its name never becomes a header. */
import { expect } from "../helpers/expect.ts";
import { sendTarget } from "../helpers/raw.ts";
import { testIf } from "../helpers/skip.ts";
import { BROWSER, NO_BROWSER, startSite, visitPage } from "./browser.ts";
import { fs, withServer } from "./support.ts";

const SAFE: Record<string, string> = {
  "content-type": "application/octet-stream",
  "content-security-policy": "sandbox; default-src 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Names and how the answer must carry them: plain for old clients, extended for the rest. */
const NAMES: [string, RegExp][] = [
  ["x.html", /^attachment; filename="?x\.html"?$/],
  ["a\r\nX-Y: z.txt", /^attachment; filename="[^\r\n"]*"; filename\*=UTF-8''a%0D%0AX-Y%3A%20z\.txt$/],
  ['a".txt', /^attachment; filename="a\\".txt"$/],
  ["a\\u.txt".replace("\\u", ";b"), /^attachment; filename="a;b\.txt"$/],
  ["보고서.pdf", /^attachment; filename="[ -~]*"; filename\*=UTF-8''%EB%B3%B4%EA%B3%A0%EC%84%9C\.pdf$/],
  ["100%41.txt", /^attachment; filename=\S+; filename\*=UTF-8''100%2541\.txt$/],
  ["x.html\u202E", /^attachment; filename="[ -~]*"; filename\*=UTF-8''x\.html%E2%80%AE$/],
];

Deno.test("report 28: a file is an attachment that is not sniffed, framed in a sandbox and kept by nobody", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    for (const [name, disposition] of NAMES) {
      const path = `in/${encodeURIComponent(name)}`;
      expect((await fs(server, "PUT", path, secret, { body: "<script>x</script>" })).status).toBe(201);
      for (const method of ["GET", "HEAD"]) {
        const answer = await sendTarget(server.port, method, `/fs/${path}?cap=${secret}`);
        expect([name, answer.status]).toEqual([name, 200]);
        for (const [header, value] of Object.entries(SAFE)) {
          expect([name, header, answer.header(header)]).toEqual([name, header, value]);
        }
        expect(answer.header("content-disposition")).toMatch(disposition);
        expect(answer.header("cache-control")).toContain("no-store");
        expect(answer.header("x-y")).toBeUndefined();
        expect(answer.header("set-cookie")).toBeUndefined();
      }
      const part = await sendTarget(server.port, "GET", `/fs/${path}?cap=${secret}`, { range: "bytes=0-3" });
      expect(part.status).toBe(206);
      for (const [header, value] of Object.entries(SAFE)) expect(part.header(header)).toBe(value);
      expect(part.header("content-disposition")).toMatch(disposition);
    }
  }));

Deno.test("report 28: a query cannot choose the type or the disposition of an answer", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    await fs(server, "PUT", "x.html", secret, { body: "<b>x</b>", headers: { "content-type": "text/html" } });
    const query =
      "response-content-type=text/html&response-content-disposition=inline&content_type=text/html";
    const answer = await sendTarget(server.port, "GET", `/fs/x.html?cap=${secret}&${query}`, {
      accept: "text/html",
    });
    expect(answer.header("content-type")).toBe("application/octet-stream");
    expect(answer.header("content-disposition")).toMatch(/^attachment/);
  }));

Deno.test("report 28: a refusal that repeats a path is JSON that no browser reads as a page", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    const answer = await sendTarget(server.port, "GET", `/fs/%3Cscript%3Ex%3C%2Fscript%3E?cap=${secret}`);
    expect(answer.header("content-type")).toContain("application/json");
    expect(answer.header("x-content-type-options")).toBe("nosniff");
    const missing = await sendTarget(server.port, "GET", `/fs/%3Cscript%3Ex?cap=${secret}`);
    expect([missing.status, missing.header("content-type")]).toEqual([404, "application/json"]);
  }));

function active(beacon: string): Record<string, string> {
  const script = `fetch("${beacon}?by=" + location.pathname.split("/").pop())`;
  return {
    "x.html":
      `<!doctype html><script>${script}</script><img src="x" onerror='${script}'><body onload='${script}'>`,
    "x.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload='${script}'><script>${script}</script></svg>`,
    "x.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><script>${script}</script></html>`,
    "x.js": script,
  };
}

/** Ways of a page to get at a link, each with a link of its own; the browser itself decides what `included` loads. */
const WAYS: Record<string, (link: string) => string> = {
  frame: (link) => `<iframe src="${link}"></iframe>`,
  included: (link) =>
    `<object data="${link}"></object><embed src="${link}"><img src="${link}"><script src="${link}"></script>`,
  "top level": (link) => `<script>location.href = "${link}";</script>`,
};
/** How long a page waits, after it asked for everything, before it says that nothing more will come. */
const SETTLED = '<script>setTimeout(() => fetch("/settled"), 1500)</script>';

testIf(
  BROWSER !== undefined,
  NO_BROWSER,
  "report 28: a browser that opens, frames or includes uploaded HTML, SVG or script runs none of it",
  () =>
    withServer(async (server) => {
      const pages: Record<string, string> = {};
      await using site = startSite(pages);
      const files = active(`${site.origin}/beacon`);
      const { secret } = await server.mint({});
      for (const [name, body] of Object.entries(files)) {
        expect((await fs(server, "PUT", name, secret, { body })).status).toBe(201);
      }
      const sawBeacon = () => site.seen.some((path) => path.startsWith("/beacon"));

      // The control shows that such a script would have been seen.
      pages["/control.html"] = files["x.html"] ?? "";
      pages["/framed"] = `<iframe src="/control.html"></iframe>`;
      await visitPage(`${site.origin}/framed`, sawBeacon);

      for (const [way, toHtml] of Object.entries(WAYS)) {
        const links = new Map<string, string>();
        for (const name of Object.keys(files)) {
          links.set(name, (await server.mint({ verbs: ["GET"], single_use: true })).secret);
        }
        const included = [...links].map(([name, once]) => `${server.url}/fs/${name}?cap=${once}`);
        // A page can go to one place only: the two kinds that a browser would show.
        const alone = included.slice(0, 2).map((link) => [link]);
        for (const urls of way === "top level" ? alone : [included]) {
          site.seen.length = 0;
          pages["/page"] = `<!doctype html>${SETTLED}${urls.map(toHtml).join("")}`;
          await visitPage(`${site.origin}/page`, () => site.seen.includes("/settled"));
          expect([way, sawBeacon()]).toEqual([way, false]);
        }
        if (way === "included") continue;
        for (const [name, once] of [...links].slice(0, way === "frame" ? links.size : alone.length)) {
          expect([way, name, (await fs(server, "GET", name, once)).reason]).toEqual([
            way,
            name,
            "already_used",
          ]);
        }
      }
    }),
);
