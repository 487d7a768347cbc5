import { expect } from "../../helpers/expect.ts";
import { tryLockFile } from "../../../store/workspace/locks.ts";
import { PathLocks } from "../../../store/workspace/path_locks.ts";
import { refusal } from "./fixture.ts";

const workspace = { agentId: "eve", key: "eve", home: "/nowhere" };

/** Runs `body` with locks of processes that share a folder, and the name of the lock file of eve's workspace. */
async function withLocks(body: (locks: PathLocks, file: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const locks = new PathLocks(folder);
    await locks.hold(workspace, "any", () => Promise.resolve());
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
    expect(names).toHaveLength(1);
    await body(locks, `${folder}/${names[0]}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("hold() refuses all who arrive together after one wait for another process, not after one each", () =>
  withLocks(async (locks, file) => {
    const held = tryLockFile(file, { create: false });
    if (held === undefined) throw new Error("Expected the lock to be free");
    let changes = 0;
    const hold = (path: string) =>
      refusal(() => locks.hold(workspace, path, () => Promise.resolve(changes++)));
    const begunAt = performance.now();
    try {
      expect(await Promise.all(["a", "b", "c", "d", "e"].map(hold))).toEqual(Array(5).fill("unavailable"));
    } finally {
      held.release();
    }
    const tookMs = performance.now() - begunAt;
    expect(tookMs).toBeGreaterThan(4900);
    expect(tookMs).toBeLessThan(7000);
    expect(changes).toBe(0);
    expect(await hold("a")).toBe("accepted");
  }));
