/** What the README tells a reader to paste is pasted here, in order, into one shell. */
import { fromFileUrl, join } from "../../base/std.ts";
import { Operator } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { runString, serve } from "../helpers/program.ts";
import { testIf } from "../helpers/skip.ts";
import { canRun, HAS_CURL, NEEDS_CURL, runTool } from "../helpers/tools.ts";

const README = await Deno.readTextFile(fromFileUrl(new URL("../../README.md", import.meta.url)));
const CUT = "=== next block ===";
const HAS_BASH = await canRun("bash", "--version");

/** Returns the code blocks whose fence says exactly `language`. */
function blocksOf(language: string): string[] {
  return [...README.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, named]) => named === language).map(([, , code = ""]) => code);
}

/** What each block prints, by the words of the README around it; the secrets of the blocks are fresh each time. */
const PRINTED: readonly (readonly RegExp[])[] = [
  [
    /"agent_id":"eve"/,
    /"webhook_url":"http:\/\/127\.0\.0\.1:\d+\/webhook\/[^"]+"/,
    /"path_prefix":"inbox\/discord"/,
    /"secret":"caps_[\w-]{43}"/,
  ],
  [
    /"path":"inbox\/discord\/cat\.txt"/,
    /"bytes":19,"created":true/,
    /HTTP\/1\.1 200/,
    /content-length: 19\r?\n/i,
    /"ok":true/,
    /"text":"see string:\/\/inbox\/discord\/cat\.txt"/,
  ],
  [/^quarterly numbers\n[^]*"reason":"already_used"/],
  [/"status":"live"/, /"status":"consumed"/, /"revoked":true/, /"deleted":true/, /cat\.txt\n$/],
];

testIf(HAS_CURL && HAS_BASH, NEEDS_CURL, "README: the walk-through works when pasted", async () => {
  await withFolder(async (folder) => {
    await using server = await serve({ cwd: folder, dataFolder: "" });
    const script = ["set -euo pipefail", ...blocksOf("sh")].join(`\necho; echo '${CUT}'\n`)
      .replaceAll("127.0.0.1:3923", `127.0.0.1:${server.port}`);
    const ran = await runTool(["bash"], { cwd: folder, stdin: script });
    expect(ran.code, ran.err + ran.out).toBe(0);
    expect(ran.err, "nothing complains").toBe("");
    const outputs = ran.out.split(CUT).slice(1).map((output) => output.trimStart());
    expect(outputs.length).toBe(PRINTED.length);
    outputs.forEach((output, index) => {
      for (const pattern of PRINTED[index] ?? []) expect(output).toMatch(pattern);
    });
    expect(outputs[2]?.match(/quarterly numbers/g)?.length, "the link served once").toBe(1);
    expect(outputs[3], "a listing shows no secret").not.toContain("caps_");
    expect(await Deno.readTextFile(join(folder, "string-data/workspaces/eve/inbox/discord/cat.txt")))
      .toBe("a picture of a cat\n");
  });
});

Deno.test("README: the command line lines do what they say", async () => {
  const [block = ""] = blocksOf("").filter((code) => code.startsWith("string agent create"));
  const lines = block.trim().split("\n");
  expect(lines.length).toBe(5);
  await using server = await serve();
  const env = { STRING_DATA: server.dataFolder };
  const printed = [
    /^Created agent 'eve'/,
    /secret: caps_/,
    /^Capabilities \(1\):/,
    /^Revoked cap_/,
    /^Deleted/,
  ];
  for (const [index, line] of lines.entries()) {
    const listed = await (await Operator.of(server)).call("GET", "/capabilities");
    const [record] = listed.body["capabilities"] as { token_id?: string }[];
    const [command, ...args] = line.replace("cap_…", record?.token_id ?? "").split(/\s+/);
    expect(command).toBe("string");
    const ran = await runString(args, { env });
    expect(ran.code, ran.err).toBe(0);
    expect(ran.out, line).toMatch(printed[index] ?? /^$/);
  }
});
