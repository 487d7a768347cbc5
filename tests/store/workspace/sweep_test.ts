import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { hasAttributes, withAttribute } from "./attributes.ts";
import { bodyOf, bytes, type Fixture, hasKernelWay, path, testBoth, withStore } from "./fixture.ts";

const MAKER = new URL("./programs/maker.ts", import.meta.url).pathname;

/** Starts another process over the fixture's folders. */
function start(
  { root, containment }: Pick<Fixture, "root" | "containment">,
  command: string,
): Deno.ChildProcess {
  const way = containment === "portable" ? "portable" : "auto";
  const args = ["run", "-A", "--no-check", MAKER, root, way, command];
  return new Deno.Command(Deno.execPath(), { args, stdout: "piped", env: { NO_COLOR: "1" } }).spawn();
}

testBoth(
  "sweep() removes what a killed process staged, and nothing of a living one (report 13)",
  async (fixture) => {
    const { store, workspace, root, staged, at } = fixture;
    const child = start(fixture, "stage");
    const reader = child.stdout.getReader();
    await reader.read();
    const mine = await store.beginUpload(workspace, path("mine"), { maxBytes: 10, fromOutside: false });
    await Deno.writeTextFile(at(".string/staging/not-ours"), "an agent's");
    expect(staged().length).toBe(4);
    expect(await store.sweep([workspace])).toBe(0);
    expect(staged().length).toBe(4);
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
    expect(await store.sweep([workspace])).toBe(2);
    expect(staged().length).toBe(2);
    expect([...Deno.readDirSync(`${root}/makers`)].length).toBe(1);
    await mine.receive(bodyOf(bytes("still")));
    await mine.commit();
    expect(await Deno.readTextFile(at("mine"))).toBe("still");
  },
);

testBoth(
  "sweep() passes over what it cannot sweep and sweeps the rest",
  async ({ store, workspace, at, root }) => {
    await Deno.writeTextFile(at(".string/staging/mk_gone.file"), "left over");
    await Deno.mkdir(at(".string/staging/mk_gone.folder"));
    const others = ["missing", "file"].map((agentId) => ({
      agentId,
      key: agentId,
      home: `${root}/workspaces/${agentId}`,
    }));
    await Deno.writeTextFile(`${root}/workspaces/file`, "no home");
    expect(await store.sweep([...others, workspace])).toBe(1);
  },
);

for (const containment of ["kernel", "portable"] as const) {
  testIf(
    hasAttributes && (containment === "portable" || hasKernelWay),
    "no file can be made immutable by this user here",
    `sweep() passes over an immutable staging file and removes the others (${containment})`,
    () =>
      withStore(containment, async ({ store, workspace, at, staged }) => {
        const names = ["a", "b", "c", "d"].map((part) => `mk_gone.${part}`);
        for (const name of names) await Deno.writeTextFile(at(`.string/staging/${name}`), "left over");
        // Not the last one that a listing gives, so that there are others behind it.
        const fixed = staged()[0] ?? "";
        await withAttribute(at(`.string/staging/${fixed}`), "i", async () => {
          expect(await store.sweep([workspace])).toBe(3);
          expect(staged()).toEqual([fixed]);
        });
        expect(await store.sweep([workspace])).toBe(1);
      }),
  );
}

testBoth(
  "of processes that share a workspace exactly one makes each new file (SYS-FS-05)",
  async (fixture) => {
    const children = [start(fixture, "create"), start(fixture, "create")];
    const outputs = await Promise.all(children.map((child) => child.output()));
    const made = outputs.map((output) => Number(new TextDecoder().decode(output.stdout)));
    expect(made.reduce((sum, count) => sum + count, 0)).toBe(30);
    expect([...Deno.readDirSync(fixture.at("race"))].length).toBe(30);
  },
  { shared: true },
);

testBoth(
  "a shared store waits for a workspace that another process holds, and says so in the end",
  async (fixture) => {
    const { put, root, another, workspace } = fixture;
    await put("x", "1");
    const names = [...Deno.readDirSync(`${root}/locks`)].map((entry) => entry.name);
    expect(names.length).toBe(1);
    using held = await Deno.open(`${root}/locks/${names[0]}`, { read: true, write: true });
    await held.lock(true);
    let done = false;
    const putting = another({ shared: true }).remove(workspace, path("x")).then(() => done = true);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(done).toBe(false);
    await held.unlock();
    await putting;
  },
  { shared: true },
);

async function hasStrace(): Promise<boolean> {
  try {
    return (await new Deno.Command("strace", { args: ["-o", "/dev/null", "true"], stderr: "null" }).output())
      .success;
  } catch {
    return false; // not installed, or not allowed: the test says so
  }
}

/** Returns the lines that strace writes of the given calls while another process does `command`. */
async function trace(containment: Fixture["containment"], command: string, calls: string): Promise<string[]> {
  const root = await Deno.makeTempDir();
  try {
    const file = `${root}/trace`;
    const way = containment === "portable" ? "portable" : "auto";
    const deno = [Deno.execPath(), "run", "-A", "--no-check", MAKER, root, way, command];
    const args = ["-f", "-y", "-o", file, "-e", `trace=${calls}`, ...deno];
    await new Deno.Command("strace", { args, stdout: "null" }).output();
    return (await Deno.readTextFile(file)).split("\n");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

for (const containment of ["kernel", "portable"] as const) {
  testIf(
    await hasStrace(),
    "strace is not installed or may not trace here",
    `a PUT is fdatasync, then rename, then fsync of the folders, then the answer (${containment})`,
    async () => {
      const lines = await trace(containment, "commit", "fdatasync,rename,renameat,renameat2,fsync,write");
      const where = (pattern: RegExp) => lines.flatMap((line, index) => pattern.test(line) ? [index] : []);
      const synced = where(/fdatasync\(\d+<.*\/staging\/mk_/)[0] ?? -1;
      const renamed = where(/rename.*mk_.*file"/)[0] ?? -1;
      const folders = where(/fsync\(\d+<.*\/eve(\/a)?(\/b)?>/).filter((index) => index > renamed);
      const answered = lines.findIndex((line) => line.includes("committed"));
      expect(synced).toBeGreaterThan(-1);
      expect(renamed).toBeGreaterThan(synced);
      // a/b for the file, a for b, and the home for a
      expect(folders.length).toBe(3);
      expect(answered).toBeGreaterThan(Math.max(...folders));
    },
  );
}

for (const containment of ["kernel", "portable"] as const) {
  testIf(
    await hasStrace(),
    "strace is not installed or may not trace here",
    `a folder whose maker fails is durable before an upload into it is answered (${containment})`,
    async () => {
      const lines = await trace(containment, "fail", "fsync,write");
      // Of the home, in which the folder's own name is: the guest itself only syncs the folder.
      const synced = lines.findIndex((line) => /fsync\(\d+<.*\/workspaces\/eve>/.test(line));
      expect(synced).toBeGreaterThan(-1);
      expect(lines.findIndex((line) => line.includes("answered"))).toBeGreaterThan(synced);
    },
  );
}

testBoth(
  "createWorkspace() is idempotent, private, and undone only while it is empty",
  async ({ store, workspace, home, put, read }) => {
    expect(await store.createWorkspace(workspace)).toBe(false);
    expect(((await Deno.stat(home)).mode ?? 0) & 0o777).toBe(0o700);
    await put("x", "kept");
    await store.removeEmptyWorkspace(workspace);
    expect(await read("x")).toBe("kept");
    await store.remove(workspace, path("x"));
    await store.removeEmptyWorkspace(workspace);
    await expect(Deno.lstat(home)).rejects.toThrow(Deno.errors.NotFound);
    await store.removeEmptyWorkspace(workspace);
    expect(await store.createWorkspace(workspace)).toBe(true);
  },
);
