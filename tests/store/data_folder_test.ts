import { OperatorError } from "../../base/operator_error.ts";
import { fromFileUrl, join, TextLineStream } from "../../base/std.ts";
import { tryLockFile } from "../../store/data_folder/flock.ts";
import { type DataFolder, openDataFolder } from "../../store/data_folder/open.ts";
import { readServerRecord } from "../../store/data_folder/server_record.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";

const IS_UNIX = Deno.build.os !== "windows";
const IS_ROOT = IS_UNIX && Deno.uid() === 0;

async function withFolder(run: (path: string) => Promise<void>): Promise<void> {
  const parent = await Deno.makeTempDir();
  try {
    await run(join(parent, "data"));
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}

async function withOpen(
  path: string,
  shared: boolean,
  run: (folder: DataFolder) => Promise<void>,
): Promise<void> {
  const folder = await openDataFolder(path, { shared });
  try {
    await run(folder);
  } finally {
    folder.close();
  }
}

async function modeOf(...segments: string[]): Promise<string> {
  return ((await Deno.stat(join(...segments))).mode ?? 0).toString(8).slice(-3);
}

async function refusal(opening: Promise<DataFolder>): Promise<OperatorError> {
  try {
    (await opening).close();
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error("Expected the data folder to be refused");
}

interface Said {
  ok: boolean;
  key?: string;
  message?: string;
}

/** Another process that opens the folder; `said` is its one line, `end` lets it go. */
function openElsewhere(path: string, mode: "shared" | "exclusive") {
  const script = fromFileUrl(new URL("./data_folder_process.ts", import.meta.url));
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", script, path, mode],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  const said = lines.read().then(({ value }) => JSON.parse(value ?? "{}") as Said);
  return {
    said,
    async end(): Promise<void> {
      await said;
      await child.stdin.close();
      await lines.cancel();
      await child.status;
    },
    async kill(): Promise<void> {
      await said;
      child.kill("SIGKILL");
      await child.stdin.close().catch(() => {}); // the reader is gone: nothing is lost
      await lines.cancel();
      await child.status;
    },
  };
}

Deno.test("openDataFolder() makes the layout with its modes", () =>
  withFolder(async (path) => {
    const umask = IS_UNIX ? Deno.umask(0o077) : 0;
    try {
      await withOpen(path, false, async (folder) => {
        await folder.writeAdminToken("adm_test");
        await folder.writeServerRecord({ url: "http://127.0.0.1:1", pid: Deno.pid, startedAtMs: 0 });
        expect(await folder.readAdminToken()).toBe("adm_test");
        expect([folder.workspaces, folder.makers, folder.locks].every((each) => each.startsWith(path))).toBe(
          true,
        );
        if (!IS_UNIX) return;
        expect(await modeOf(path)).toBe("711");
        expect(await modeOf(folder.workspaces)).toBe("711");
        for (const inner of [folder.makers, folder.locks]) expect(await modeOf(inner)).toBe("700");
        for (const file of ["secret.key", "admin.token", "server.json", "owner.lock"]) {
          expect(await modeOf(path, file), file).toBe("600");
        }
      });
    } finally {
      if (IS_UNIX) Deno.umask(umask);
    }
    const left = [...Deno.readDirSync(path)].map((entry) => entry.name).filter((name) =>
      name.endsWith(".tmp")
    );
    expect(left).toEqual([]);
  }));

testIf(
  IS_UNIX,
  "modes are a Unix matter",
  "openDataFolder() keeps the mode of a folder that is there",
  () =>
    withFolder(async (path) => {
      await Deno.mkdir(path);
      await Deno.chmod(path, 0o750);
      await withOpen(path, false, async () => expect(await modeOf(path)).toBe("750"));
    }),
);

Deno.test("openDataFolder() refuses a second owner and names --shared, in two processes", () =>
  withFolder(async (path) => {
    await withOpen(path, false, async (folder) => {
      await folder.writeServerRecord({ url: "http://127.0.0.1:4", pid: 4711, startedAtMs: 0 });
      const other = openElsewhere(path, "exclusive");
      expect(await other.said).toMatchObject({ ok: false });
      expect((await other.said).message).toContain("another server (pid 4711, http://127.0.0.1:4) owns it");
      await other.end();
      const shared = openElsewhere(path, "shared");
      expect((await shared.said).message).toContain("was started without --shared");
      await shared.end();
      const error = await refusal(openDataFolder(path, { shared: false }));
      expect(error.hint).toContain("start all of them with --shared");
    });
  }));

Deno.test("openDataFolder() lets servers with --shared in together and keeps one without out", () =>
  withFolder(async (path) => {
    const other = openElsewhere(path, "shared");
    expect((await other.said).ok).toBe(true);
    await withOpen(path, true, async () => {});
    expect((await refusal(openDataFolder(path, { shared: false }))).message).toContain(
      "another server owns it",
    );
    await other.end();
    await withOpen(path, false, async () => {});
  }));

Deno.test("openDataFolder() opens at once after its owner was killed (report 59)", () =>
  withFolder(async (path) => {
    const other = openElsewhere(path, "exclusive");
    expect((await other.said).ok).toBe(true);
    await other.kill();
    await withOpen(path, false, async () => {});
  }));

testIf(
  IS_UNIX,
  "children inherit descriptors on Unix",
  "openDataFolder() leaves no lock with a child process",
  () =>
    withFolder(async (path) => {
      const folder = await openDataFolder(path, { shared: false });
      const child = new Deno.Command("cat", { stdin: "piped", stdout: "null" }).spawn();
      folder.close();
      try {
        await withOpen(path, false, async () => {});
      } finally {
        await child.stdin.close();
        await child.status;
      }
    }),
);

/** Waits until nobody holds the lock: an abandoned attempt of the way without FFI gives it up when it is granted. */
async function untilFree(file: string): Promise<void> {
  const deadline = Date.now() + 5000;
  while (Date.now() < deadline) {
    const held = await tryLockFile(file, { shared: false });
    held?.release();
    if (held !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error("The lock was never given up");
}

Deno.test("tryLockFile() without FFI sees and is seen by the lock with it", () =>
  withFolder(async (path) => {
    await Deno.mkdir(path);
    const file = join(path, "x.lock");
    for (const shared of [false, true]) {
      for (const withoutFfi of [true, false]) {
        const held = await tryLockFile(file, { shared, withoutFfi });
        expect(held).toBeDefined();
        const second = await tryLockFile(file, { shared: true, withoutFfi: !withoutFfi });
        expect(second !== undefined, JSON.stringify({ shared, withoutFfi })).toBe(shared);
        second?.release();
        held?.release();
        held?.release();
        await untilFree(file);
      }
    }
  }));

Deno.test("openDataFolder() gives processes that start at once the same secret key", () =>
  withFolder(async (path) => {
    for (let round = 0; round < 3; round++) {
      const folder = `${path}-${round}`;
      const others = Array.from({ length: 4 }, () => openElsewhere(folder, "shared"));
      const said = await Promise.all(others.map((other) => other.said));
      await Promise.all(others.map((other) => other.end()));
      expect(said.map((each) => each.ok)).toEqual([true, true, true, true]);
      expect(new Set(said.map((each) => each.key)).size).toBe(1);
      expect(said[0]?.key).toHaveLength(43);
    }
  }));

Deno.test("openDataFolder() takes the operator's key in hex or base64url, writes none, and repeats none", () =>
  withFolder(async (path) => {
    for (const secretKey of ["ab".repeat(32), "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s"]) {
      const folder = await openDataFolder(path, { shared: false, secretKey });
      folder.close();
      expect([...folder.secretKey]).toEqual(Array(32).fill(0xAB));
    }
    await expect(Deno.stat(join(path, "secret.key"))).rejects.toThrow(Deno.errors.NotFound);
    for (const secretKey of ["", "short", "ab".repeat(31), "ab".repeat(33), "zz".repeat(32)]) {
      const error = await refusal(openDataFolder(path, { shared: false, secretKey }));
      expect(error.message).toContain("must be 32 bytes");
      if (secretKey !== "") expect(error.message).not.toContain(secretKey);
    }
  }));

Deno.test("openDataFolder() keeps its key over restarts and refuses a broken one", () =>
  withFolder(async (path) => {
    const first = await openDataFolder(path, { shared: false });
    first.close();
    const second = await openDataFolder(path, { shared: false });
    second.close();
    expect(second.secretKey).toEqual(first.secretKey);
    await Deno.writeTextFile(join(path, "secret.key"), "torso");
    const error = await refusal(openDataFolder(path, { shared: false }));
    expect(error.message).toContain("is not 32 bytes");
    expect(error.message).not.toContain("torso");
    await Deno.remove(join(path, "secret.key"));
    await withOpen(path, false, async () => {});
  }));

Deno.test("openDataFolder() refuses what is not a directory", () =>
  withFolder(async (path) => {
    await Deno.writeTextFile(path, "a file");
    expect((await refusal(openDataFolder(path, { shared: false }))).message).toContain("is not a directory");
    const inside = await refusal(openDataFolder(join(path, "deeper"), { shared: false }));
    expect(inside.message).toContain("not a directory");
    expect(inside.hint).toContain("--data");
  }));

testIf(
  IS_UNIX && !IS_ROOT,
  "root may write everywhere",
  "openDataFolder() refuses a folder it may not write",
  () =>
    withFolder(async (path) => {
      await Deno.mkdir(path);
      await Deno.chmod(path, 0o500);
      expect((await refusal(openDataFolder(path, { shared: false }))).message).toContain(
        "may not read and write",
      );
      await Deno.chmod(path, 0o700);
    }),
);

testIf(
  Deno.build.os === "linux",
  "needs /proc",
  "openDataFolder() refuses a place where nothing can be made",
  async () => {
    const error = await refusal(openDataFolder("/proc/string-data", { shared: false }));
    expect(error.message).toContain('"/proc/string-data"');
  },
);

Deno.test("removeServerRecord() takes back its own record and leaves a later server's", () =>
  withFolder(async (path) => {
    const file = join(path, "server.json");
    await withOpen(path, true, async (folder) => {
      await folder.removeServerRecord();
      await folder.writeServerRecord({ url: "http://127.0.0.1:1", pid: 1, startedAtMs: 0 });
      expect(JSON.parse(await Deno.readTextFile(file))).toEqual({
        url: "http://127.0.0.1:1",
        pid: 1,
        started_at: "1970-01-01T00:00:00.000Z",
      });
      await withOpen(path, true, async (later) => {
        await later.writeServerRecord({ url: "http://127.0.0.1:2", pid: 2, startedAtMs: 5 });
        await folder.removeServerRecord();
        expect(await readServerRecord(file)).toEqual({ url: "http://127.0.0.1:2", pid: 2, startedAtMs: 5 });
        await later.removeServerRecord();
      });
      expect(await readServerRecord(file)).toBeUndefined();
      await Deno.writeTextFile(file, '{"url":1}');
      expect(await readServerRecord(file)).toBeUndefined();
    });
  }));

Deno.test("openDataFolder() sweeps unfinished small files when it is the only owner", () =>
  withFolder(async (path) => {
    await withOpen(path, false, async () => {});
    const staged = join(path, ".admin.token.AAAAAAAAAAAA.tmp");
    await Deno.writeTextFile(staged, "x");
    await withOpen(path, true, async () => expect((await Deno.stat(staged)).isFile).toBe(true));
    await withOpen(path, false, async () => {});
    await expect(Deno.stat(staged)).rejects.toThrow(Deno.errors.NotFound);
  }));
