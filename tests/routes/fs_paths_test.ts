/** One canonical path per request, whatever its spelling; what can never be one is 400. */
import { expect } from "../helpers/expect.ts";
import { sendTarget } from "../helpers/raw.ts";
import { startServer } from "../helpers/server.ts";
import { type Row, testRows } from "./rows.ts";

function illegal(target: string, ...rules: string[]): Row {
  return {
    name: `GET ${target.length > 60 ? `${target.slice(0, 60)}…` : target} is 400`,
    rules: ["SYS-FS-07", ...rules],
    files: { a: "x" },
    request: { method: "GET", target },
    expect: { status: 400, reason: "invalid_path" },
  };
}

function same(target: string, canonical: string): Row {
  return {
    name: `PUT ${target} writes ${canonical}`,
    rules: ["SYS-FS-07", "report 14"],
    request: { method: "PUT", target, headers: { "content-length": "0" } },
    expect: { status: 201, json: { path: canonical } },
    disk: { [canonical]: "" },
  };
}

const wide = "é".repeat(127) + "x"; // 255 bytes of UTF-8
const deep = Array.from({ length: 16 }, () => "d".repeat(255)).join("/"); // 4095 bytes

const rows: Row[] = [
  illegal("/fs/a%2Fb"),
  illegal("/fs/a%2fb"),
  illegal("/fs/a%00b", "report 23"),
  illegal("/fs/a%5Cb"),
  illegal("/fs/a\\b"),
  illegal("/fs/../a"),
  illegal("/fs/x/../a"),
  illegal("/fs/x/.."),
  illegal("/fs/%2e%2e/a", "report 20"),
  illegal("/fs/.%2E/a"),
  illegal("/fs/in/%2e%2e/%2e%2e/etc/passwd", "report 20"),
  illegal("/fs/in/..%2f..%2fetc/passwd", "report 20"),
  illegal("/fs/%", "report 23"),
  illegal("/fs/%zz", "report 23"),
  illegal("/fs/%C0%80", "report 23"),
  illegal("/fs/%E0%A4%A", "report 23"),
  illegal("/fs/%ED%A0%80"),
  illegal(`/fs/${"n".repeat(256)}`, "SYS-FS-08", "report 14"),
  illegal(`/fs/${encodeURIComponent("é".repeat(128))}`, "SYS-FS-08"),
  illegal(`/fs/${deep}/x`, "SYS-FS-08"),
  same("/fs/a//./b/", "a/b"),
  same("/fs//a/b", "a/b"),
  same("/fs/%2e/a", "a"),
  same("/fs/%252e%252e", "%2e%2e"),
  same("/fs/a+b&c=d.txt", "a+b&c=d.txt"),
  same("/fs/%EB%B3%B4%EA%B3%A0%EC%84%9C%20%C3%BCber%20100%25.pdf", "보고서 über 100%.pdf"),
  same("/fs/emoji-%F0%9F%A7%B5", "emoji-🧵"),
  same(`/fs/${encodeURIComponent(wide)}`, wide),
  same("/fs/...", "..."),
  same("/fs/a%3Fb%23c", "a?b#c"),
  same("/fs/a%20", "a "),
  {
    name: "GET answers 403 for what is under .string, in any case",
    rules: ["SYS-ERR-02"],
    request: { method: "GET", path: "/fs/.STRING/staging/x" },
    expect: { status: 403, reason: "path_outside_scope" },
  },
  {
    name: "PUT answers 403 for .string itself",
    rules: ["SYS-ERR-02"],
    request: { method: "PUT", path: "/fs/.string", body: "x" },
    expect: { status: 403, reason: "path_outside_scope" },
  },
  {
    name: "PUT below a folder of that name elsewhere is allowed",
    rules: ["SYS-ERR-02"],
    request: { method: "PUT", path: "/fs/a/.string", body: "x" },
    expect: { status: 201 },
    disk: { "a/.string": "x" },
  },
];

const files = {
  "out/report.pdf": "x",
  "out/report.pdf.bak": "secret words",
  "in/discord_evil/x": "secret words",
};
const grant = { path_prefix: "out/report.pdf" };

function outside(target: string, prefix: string): Row {
  return {
    name: `GET ${target} under a grant on ${prefix} is 403`,
    rules: ["SYS-FS-11", "report 8", "report 19"],
    files,
    grant: { path_prefix: prefix },
    request: { method: "GET", target },
    expect: { status: 403, reason: "path_outside_scope", lacks: ["secret words"] },
  };
}

const scopes: Row[] = [
  {
    name: "GET of exactly the granted file is 200",
    rules: ["SYS-FS-11"],
    files,
    grant,
    request: { method: "GET", path: "/fs/out/report.pdf" },
    expect: { status: 200, body: "x" },
  },
  {
    name: "GET below the granted file is 409",
    rules: ["SYS-FS-11", "report 8"],
    files,
    grant,
    request: { method: "GET", path: "/fs/out/report.pdf/x" },
    expect: { status: 409, reason: "parent_is_file" },
  },
  outside("/fs/out/report.pdf.bak", "out/report.pdf"),
  outside("/fs/out/Report.pdf", "out/report.pdf"),
  outside("/fs/out/report.pdf%20", "out/report.pdf"),
  outside("/fs/out", "out/report.pdf"),
  outside("/fs/", "out/report.pdf"),
  outside("/fs/in/discord_evil/x", "in/discord"),
  outside("/fs/in/discord./x", "in/discord"),
  {
    name: "PUT through '..' into a sibling is 400",
    rules: ["report 19"],
    grant: { path_prefix: "in/discord" },
    request: { method: "PUT", target: "/fs/in/discord/../slack/x", headers: { "content-length": "0" } },
    expect: { status: 400, reason: "invalid_path" },
    disk: { "in/slack": null },
  },
  {
    name: "GET of nothing outside the subtree is 403, as if it were there",
    rules: ["SYS-ERR-04"],
    grant: { path_prefix: "in" },
    request: { method: "GET", path: "/fs/out/nothing" },
    expect: { status: 403, reason: "path_outside_scope" },
  },
  {
    name: "PUT below a link that leads inside the workspace is 403",
    rules: ["report 17"],
    files: { "real/x": "1" },
    before: ({ home }) => Deno.symlink("real", `${home}/l`),
    request: { method: "PUT", path: "/fs/l/x", body: "2" },
    expect: { status: 403, reason: "symlink" },
    disk: { "real/x": "1" },
  },
  {
    name: "GET of a FIFO is 409 at once",
    rules: ["SYS-ERR-02"],
    async before({ home }) {
      const made = await new Deno.Command("mkfifo", { args: [`${home}/pipe`] }).output();
      expect(made.success).toBe(true);
    },
    request: { method: "GET", path: "/fs/pipe" },
    expect: { status: 409, reason: "not_a_file" },
  },
];

testRows("paths of /fs/{path}", rows);
testRows("scopes of /fs/{path}", scopes);
testRows("paths of /fs/{path} with the portable opener", [...rows, ...scopes].slice(-12), {
  env: { STRING_CONTAINMENT: "portable" },
});

Deno.test("GET of a raw byte that is no UTF-8 is 400, whoever refuses it (SYS-FS-07)", async () => {
  await using server = await startServer();
  const { secret } = await server.mint({});
  const answer = await sendTarget(server.port, "GET", "/fs/a\xff", { authorization: `Bearer ${secret}` });
  expect(answer.status).toBe(400);
  expect(await (await server.fetch("/health")).json()).toMatchObject({ ok: true });
});
