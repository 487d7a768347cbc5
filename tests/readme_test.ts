/** The README names only what is there; what it tells to paste runs in `e2e/walkthrough_test.ts`. */
import { ERRORS } from "../base/errors.ts";
import { fromFileUrl } from "../base/std.ts";
import { ask } from "./helpers/api.ts";
import { expect } from "./helpers/expect.ts";
import { withFolder } from "./helpers/folder.ts";
import { serve } from "./helpers/program.ts";

const ROOT = new URL("../", import.meta.url);
const README = await Deno.readTextFile(new URL("README.md", ROOT));

Deno.test("README: every task that it names is a task", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  const named = [...README.matchAll(/\btask ([a-z:0-9]+)/g)].map(([, name]) => name ?? "");
  expect(named.length).toBeGreaterThan(3);
  for (const name of named) expect(Object.keys(tasks)).toContain(name);
});

Deno.test("README: every reason that it names has the status that it says", () => {
  const rows = [...README.matchAll(/^\| (4\d\d) +\| (.+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(2);
  for (const [, status, text = ""] of rows) {
    for (const [, reason = ""] of text.matchAll(/`(\w+)`/g)) {
      expect(ERRORS[reason as keyof typeof ERRORS]?.status, reason).toBe(Number(status));
    }
  }
});

Deno.test("README: every file that it links to is there", async () => {
  for (const [, target = ""] of README.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
    await Deno.stat(fromFileUrl(new URL(target, ROOT)));
  }
});

Deno.test("README: the start task serves, passes its arguments on, and stops when it is told to", () =>
  withFolder(async (folder) => {
    // `serve` begins the arguments that the task already has; the flags follow.
    const program = ["sh", "-c", 'shift && exec "$0" task start "$@"', Deno.execPath()];
    const dataFolder = `${folder}/data`;
    await using server = await serve({ program, cwd: fromFileUrl(ROOT), dataFolder });
    expect((await ask(server.url + "/health")).body["ok"]).toBe(true);
    const record = JSON.parse(await Deno.readTextFile(`${dataFolder}/server.json`));
    expect([record.pid, record.url]).toEqual([server.pid, server.url]);
    expect((await server.stop()).code).toBe(0);
  }));
