import { VERSION } from "../../base/version.ts";
import { toFailure } from "../../cli/failure.ts";
import { AppError } from "../../base/errors.ts";
import { expect } from "../helpers/expect.ts";
import { run } from "./harness.ts";

Deno.test("version prints one line, or one JSON document", async () => {
  const ran = await run(["version"]);
  expect([ran.code, ran.err]).toEqual([0, ""]);
  expect(ran.out).toMatch(/^string \d+\.\d+\.\d+ \(deno .+\)\n$/);
  expect(JSON.parse((await run(["version", "--json"])).out)).toMatchObject({
    name: "string",
    version: VERSION,
  });
  expect(await run(["--version"])).toEqual({ code: 0, out: `${VERSION}\n`, err: "" });
});

Deno.test("--help prints to standard output, with examples, at every level", async () => {
  const levels = [
    [],
    ["serve"],
    ["version"],
    ["agent"],
    ["agent", "create"],
    ["agent", "list"],
    ["agent", "delete"],
    ["agent", "use"],
    ["agent", "capability"],
    ["agent", "capability", "mint"],
    ["agent", "capability", "list"],
    ["agent", "capability", "revoke"],
  ];
  for (const level of levels) {
    const ran = await run([...level, "--help"]);
    expect([ran.code, ran.err], level.join(" ")).toEqual([0, ""]);
    expect(ran.out).toContain(["Usage: string", ...level].join(" "));
    expect(ran.out).toMatch(/\nExamples?:\n {2}\S/);
  }
});

Deno.test("serve --help names every flag of the system plane", async () => {
  const { out } = await run(["serve", "--help"]);
  const flags =
    "host port data db shared max-bytes disk-reserve public-url allowed-host trusted-hops trust-loopback " +
    "homes cors-origin role label log-level";
  for (const flag of flags.split(" ")) expect(out).toContain(`--${flag} `);
  expect(out).not.toContain("STRING_CONTAINMENT");
});

Deno.test("what is misspelt is exit code 2 and suggests the nearest", async () => {
  const rows: [string[], string][] = [
    [["agnt"], "Did you mean agent?"],
    [["agent", "lst"], "Did you mean list?"],
    [["agent", "capability", "mnt"], "Did you mean mint?"],
    [["agent", "list", "--jsn"], "Did you mean --json?"],
    [["serve", "--prt", "1"], "Did you mean --port?"],
    [["serve", "extra"], "too many arguments"],
    [["agent", "create"], "missing required argument"],
    [["serve", "--port"], "argument missing"],
    [[], "Usage: string"],
    [["agent"], "Usage: string agent"],
    [["agent", "capability"], "Usage: string agent capability"],
  ];
  for (const [args, message] of rows) {
    const ran = await run(args);
    expect([ran.code, ran.out], args.join(" ")).toEqual([2, ""]);
    expect(ran.err).toContain(message);
  }
});

Deno.test("help that is asked for is exit code 0", async () => {
  for (
    const args of [["help"], ["help", "agent"], ["agent", "help", "create"], ["--help"], ["agent", "--help"]]
  ) {
    const ran = await run(args);
    expect([ran.code, ran.err], args.join(" ")).toEqual([0, ""]);
    expect(ran.out).toContain("Usage: string");
  }
  expect((await run(["--help"])).out).toContain("STRING_ADMIN_TOKEN");
});

Deno.test("toFailure() gives an AppError the exit code of its status and keeps what nobody foresaw at 1", () => {
  expect(toFailure(new AppError("unavailable", "Busy"))).toMatchObject({ exitCode: 6, message: "Busy" });
  expect(toFailure(new AppError("disk_full", "Full")).exitCode).toBe(7);
  expect(toFailure(new TypeError("x"))).toMatchObject({ exitCode: 1, message: "TypeError: x" });
  expect(toFailure("x").exitCode).toBe(1);
});
