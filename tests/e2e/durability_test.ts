/**
 * What has reached the disk when an upload is answered, by the system calls of the running program.
 *
 * A kill proves no durability: the kernel keeps what was written. The order of the calls does.
 * Source: architecture.md "Workspaces".
 */
import { join } from "../../base/std.ts";
import { expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { serve } from "../helpers/program.ts";
import { testIf } from "../helpers/skip.ts";
import { parseTrace, type SystemCall } from "../helpers/strace.ts";
import { canRun } from "../helpers/tools.ts";

const STRACE = ["strace", "-f", "-tt", "-y", "-qq", "-s", "64"];
const CALLS = "trace=fsync,fdatasync,rename,renameat,renameat2,write,writev,sendto,sendmsg";
const CAN_TRACE = await canRun(...STRACE, "-o", "/dev/null", "true");

function find(
  calls: readonly SystemCall[],
  what: string,
  matches: (call: SystemCall) => boolean,
): SystemCall {
  const found = calls.find(matches);
  if (found === undefined) throw new Error(`Not in the trace: ${what}`);
  return found;
}

/** The steps of one upload to `name` in the folder `d`, from the trace of the whole server. */
function stepsOf(calls: readonly SystemCall[], name: string) {
  const rename = find(
    calls,
    `the rename to ${name}`,
    (call) => call.name.startsWith("rename") && call.args.includes(`"${name}"`) && call.result === "0",
  );
  const staged = /"(mk_[\w.-]+)"/.exec(rename.args)?.[1] ?? "no staging file";
  const isSync = ({ name, result }: SystemCall) => /^f(data)?sync$/.test(name) && result === "0";
  const after = calls.filter(({ begunAt }) => begunAt > rename.endedAt);
  return {
    rename,
    sync: find(
      calls,
      "the sync of the staging file",
      (call) => isSync(call) && call.args.includes(`/${staged}>`),
    ),
    folderSync: find(after, "the sync of the folder", (call) => isSync(call) && call.args.endsWith("/d>")),
    answer: find(
      after,
      "the answer",
      (call) => /^(write|send)/.test(call.name) && call.args.includes('"HTTP/1.1 201'),
    ),
    /** Commits of the database, in order. */
    commits: calls.filter((call) => isSync(call) && call.args.includes("/string.db-wal>")),
    syncs: calls.filter(isSync),
  };
}

testIf(
  CAN_TRACE,
  "strace is not installed or not permitted here",
  "PUT /fs/{path} answers 201 when file, name and folder are on the disk, and a single use is spent before it shows",
  async () => {
    await withFolder(async (folder) => {
      const trace = join(folder, "trace");
      const dataFolder = join(folder, "data");
      await using server = await serve({ dataFolder, wrapper: [...STRACE, "-o", trace, "-e", CALLS] });
      const operator = await Operator.of(server);
      await operator.pair();
      const { secret } = await operator.mint();
      const once = await operator.mint({ path_prefix: "d/once.bin", verbs: ["PUT"], single_use: true });
      expectStatus(await put(toLink(server.url, "d/small.bin", secret), "small"), 201);
      expectStatus(await put(toLink(server.url, "d/large.bin", secret), new Uint8Array(3 * 2 ** 20)), 201);
      expectStatus(await put(toLink(server.url, "d/once.bin", once.secret), "once"), 201);
      await server.stop();
      const text = await Deno.readTextFile(trace);
      const calls = parseTrace(text);

      for (const name of ["small.bin", "large.bin", "once.bin"]) {
        const { sync, rename, folderSync, answer } = stepsOf(calls, name);
        expect(sync.endedAt, `${name}: bytes before name`).toBeLessThan(rename.begunAt);
        expect(rename.endedAt, `${name}: name before folder`).toBeLessThan(folderSync.begunAt);
        expect(folderSync.endedAt, `${name}: folder before answer`).toBeLessThan(answer.begunAt);
      }

      const made = stepsOf(calls, "small.bin");
      const parentSync = find(
        made.syncs,
        "the sync of the folder that the new folder is in",
        (call) => call.begunAt > made.sync.begunAt && call.args.endsWith("/workspaces/eve>"),
      );
      expect(parentSync.endedAt, "a new folder's own name is on the disk").toBeLessThan(made.answer.begunAt);

      const { sync, rename, commits } = stepsOf(calls, "once.bin");
      const spent = commits.filter(({ begunAt, endedAt }) =>
        begunAt > sync.endedAt && endedAt < rename.begunAt
      );
      expect(spent.length, "the spending is committed between the sync of the bytes and the rename")
        .toBeGreaterThan(0);
    });
  },
);
