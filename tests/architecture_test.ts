/**
 * The house rules that no compiler knows: arrows between rooms point down, and some words stand in one place only.
 *
 * The checker is tested on planted lines first, so that it is known to be able to fail. Source: docs/architecture.md.
 */
import { fromFileUrl, join } from "../base/std.ts";
import { expect } from "./helpers/expect.ts";

const ROOT = fromFileUrl(new URL("..", import.meta.url));

/** Rooms from the roof to the ground: each may use those behind it. */
const ROOMS = ["main", "cli", "routes", "runtime", "caps", "store", "base"];
/** Text in, structure out: `sfmd` stands beside the stairs and rests on `base` alone. */
const BESIDE = "sfmd";
const MAX_LINES = 350;

/** Below `routes`, commands use values only to start or check a server, or to find one. */
const CLI_REACHES_DOWN = [
  /^cli\/(serve|migrate|backup|restore|sandbox|check)[a-z_]*\.ts /,
  // Where the server is and which token opens it stands in files that the server writes.
  /^cli\/locate\.ts (runtime\/secret_env|store\/data_folder\/server_record)\.ts$/,
];

interface Import {
  readonly from: string;
  /** Whether nothing of it is there when the program runs. */
  readonly typeOnly: boolean;
}

const IMPORT =
  /^[ \t]*(import|export)\b(?<clause>[^;"'`]*?)\bfrom\s*["'](?<from>[^"']+)["']|^[ \t]*import\s*["'](?<bare>[^"']+)["']|\bimport\(\s*["'](?<later>[^"']+)["']/gm;

function isTypeOnly(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true;
  const names = /^\s*\{([^}]*)\}\s*$/.exec(clause)?.[1]?.split(",").map((name) => name.trim()) ?? [""];
  return names.filter((name) => name !== "").every((name) => name.startsWith("type ")) && names[0] !== "";
}

function importsOf(text: string): Import[] {
  return [...text.matchAll(IMPORT)].map(({ groups = {} }) => ({
    from: groups.from ?? groups.bare ?? groups.later ?? "",
    typeOnly: groups.clause !== undefined && isTypeOnly(groups.clause),
  }));
}

function roomOf(path: string): string {
  return path === "main.ts" ? "main" : path.split("/")[0] ?? "";
}

/** Returns the path of a relative import from the project's root. */
function resolveFrom(file: string, from: string): string {
  return new URL(from, `file:///${file}`).pathname.slice(1);
}

function judgeImport(file: string, { from, typeOnly }: Import): string | undefined {
  if (from.startsWith("@std/")) {
    return file === "base/std.ts" ? undefined : `${from} comes through base/std.ts`;
  }
  if (!from.startsWith(".")) {
    const database = /^(kysely|libsql|@libsql\/)/.test(from);
    return database && !typeOnly && !file.startsWith("store/database/")
      ? `only store/database imports ${from}`
      : undefined;
  }
  const target = resolveFrom(file, from);
  const [here, there] = [roomOf(file), roomOf(target)];
  if (here === there) return undefined;
  if (here === BESIDE) {
    return there === "base" ? undefined : `${BESIDE} rests on base alone, not on ${target}`;
  }
  if (there === BESIDE) {
    return ["cli", "routes", "runtime"].includes(here) ? undefined : `${here} must not use ${target}`;
  }
  const [from_, to] = [ROOMS.indexOf(here), ROOMS.indexOf(there)];
  if (to < 0 || to <= from_) return `an arrow points up: ${here} uses ${target}`;
  if (here === "cli" && to > ROOMS.indexOf("routes") && there !== "base" && !typeOnly) {
    const allowed = CLI_REACHES_DOWN.some((pattern) => pattern.test(`${file} ${target}`));
    return allowed ? undefined : `cli reaches past routes to ${target}`;
  }
  if (here === "main" && there !== "cli") return `main hands over to cli alone, not to ${target}`;
  return undefined;
}

interface WordRule {
  readonly word: RegExp;
  readonly allowedIn: RegExp;
  readonly why: string;
}

const WORDS: readonly WordRule[] = [
  {
    word: /\bDeno\.(exit|args)\b/,
    allowedIn: /^main\.ts$/,
    why: "only main.ts ends the process and reads its arguments",
  },
  {
    word: /\bconsole\./,
    allowedIn: /^(cli\/output|base\/log)\.ts$/,
    why: "only cli/output.ts and base/log.ts print",
  },
  {
    word:
      /\bDeno\.(open|readFile|readTextFile|writeFile|writeTextFile|stat|lstat|readDir|remove|rename|mkdir)/,
    allowedIn: /^(?!routes\/|caps\/|sfmd\/)/,
    why: "routes, caps and sfmd open no file",
  },
  {
    word: /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b.*\b(FROM|VALUES|SET|WHERE)\b/,
    allowedIn: /^(store\/database|main\.ts)/,
    why: "SQL does not leave store/database",
  },
  {
    word: /(: Request\b|\bnew (Request|Response)\()/,
    // The client of a database server sends requests of its own.
    allowedIn: /^(routes|runtime|cli)\/|^store\/database\/server_engine\.ts$/,
    why: "what is below runtime never sees a Request",
  },
  {
    word: /\bDeno\.|\bDate\.now\b|\bMath\.random\b/,
    allowedIn: /^(?!sfmd\/|caps\/policy\.ts)/,
    why: "it is pure",
  },
];

function isComment(line: string): boolean {
  return /^\s*(\/\/|\/?\*)/.test(line);
}

/** Returns what is wrong with a source file, each with its line where there is one. */
function judge(file: string, text: string): string[] {
  const wrong = importsOf(text).map((one) => judgeImport(file, one)).filter((one) => one !== undefined)
    .map((what) => `${file}: ${what}`);
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    if (isComment(line)) return;
    for (const { word, allowedIn, why } of WORDS) {
      if (word.test(line) && !allowedIn.test(file)) wrong.push(`${file}:${index + 1}: ${why}`);
    }
  });
  const count = text.endsWith("\n") ? lines.length - 1 : lines.length;
  if (count > MAX_LINES) wrong.push(`${file}: ${count} lines, more than ${MAX_LINES}`);
  return wrong;
}

const SKIPPED = new Set([".git", "dist", "node_modules", "string-data"]);

/** Returns every file of the project by its path from the root. */
async function filesOf(folder = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(join(ROOT, folder))) {
    if (SKIPPED.has(entry.name)) continue;
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory) found.push(...await filesOf(path));
    else if (entry.isFile) found.push(path);
  }
  return found;
}

function isSource(path: string): boolean {
  return path.endsWith(".ts") && [...ROOMS, BESIDE].includes(roomOf(path));
}

Deno.test("every file of the rooms keeps the rules of the house", async () => {
  const sources = (await filesOf()).filter(isSource);
  expect(sources.length).toBeGreaterThan(100);
  for (const room of ROOMS) {
    expect(sources.some((path) => roomOf(path) === room), `files of ${room}`).toBe(true);
  }
  const wrong: string[] = [];
  for (const path of sources) wrong.push(...judge(path, await Deno.readTextFile(join(ROOT, path))));
  expect(wrong).toEqual([]);
});

Deno.test("no file outside .ci mentions what lies beside the project", async () => {
  const beside = ["..", "shared"].join("/");
  const found: string[] = [];
  for (const path of await filesOf()) {
    if (path.startsWith(".ci/")) continue;
    if ((await Deno.readTextFile(join(ROOT, path))).includes(beside)) found.push(path);
  }
  expect(found).toEqual([]);
});

const PLANTED: readonly [string, string, string][] = [
  ["base/x.ts", 'import { a } from "../store/x.ts";', "points up"],
  ["base/x.ts", 'import type { A } from "../caps/model.ts";', "points up"],
  ["store/database/x.ts", 'export * from "../../runtime/x.ts";', "points up"],
  ["caps/x.ts", 'import {\n  type A,\n  b,\n} from "../routes/x.ts";', "points up"],
  ["runtime/x.ts", 'const { a } = await import("../cli/x.ts");', "points up"],
  ["routes/x.ts", 'import "../cli/x.ts";', "points up"],
  ["runtime/x.ts", 'import { a } from "../tests/helpers/x.ts";', "points up"],
  ["runtime/x.ts", 'export { a } from "../main.ts";', "points up"],
  ["store/x.ts", 'import { parse } from "../sfmd/parse.ts";', "must not use"],
  ["sfmd/x.ts", 'import { a } from "../store/x.ts";', "base alone"],
  ["cli/agent.ts", 'import { a } from "../store/x.ts";', "past routes"],
  ["cli/agent.ts", 'import { type A, b } from "../runtime/x.ts";', "past routes"],
  ["main.ts", 'import { a } from "./runtime/x.ts";', "hands over"],
  ["caps/x.ts", 'import { sql } from "kysely";', "only store/database"],
  ["runtime/x.ts", 'import Database from "libsql";', "only store/database"],
  ["runtime/x.ts", 'import { join } from "@std/path";', "base/std.ts"],
  ["cli/x.ts", "Deno.exit(1);", "main.ts"],
  ["runtime/x.ts", "const [first] = Deno.args;", "main.ts"],
  ["routes/x.ts", '  console.log("x");', "print"],
  ["routes/x.ts", "await Deno.readTextFile(path);", "open no file"],
  ["runtime/x.ts", 'db.run("SELECT * FROM agents WHERE 1");', "SQL"],
  ["store/x.ts", "function f(request: Request) {}", "Request"],
  ["caps/policy.ts", "const now = Date.now();", "pure"],
  ["base/x.ts", "\n".repeat(MAX_LINES + 1), "lines"],
];

for (const [file, line, what] of PLANTED) {
  Deno.test(`judge() finds what is planted in ${file}: ${line.trim().slice(0, 60).replaceAll("\n", " ")}`, () => {
    expect(judge(file, line).join("\n")).toContain(what);
  });
}

Deno.test("judge() passes what the rules allow", () => {
  const allowed: readonly [string, string][] = [
    ["routes/x.ts", 'import { a } from "../base/x.ts";\nimport type { Selectable } from "kysely";'],
    ["caps/x.ts", 'import { type A, type B } from "../store/x.ts";\nimport { c } from "./y.ts";'],
    ["cli/agent.ts", 'import type { Environment } from "../runtime/config.ts";'],
    ["cli/serve.ts", 'import { createContext } from "../runtime/context.ts";'],
    ["runtime/x.ts", 'import { parse } from "../sfmd/parse.ts";'],
    ["store/database/x.ts", 'import { sql } from "kysely";'],
    ["base/std.ts", 'export { join } from "@std/path";'],
    ["routes/x.ts", '// console.log("x") is not for here\n * Deno.exit(1)'],
    ["base/x.ts", "\n".repeat(MAX_LINES)],
  ];
  for (const [file, text] of allowed) expect(judge(file, text)).toEqual([]);
});
