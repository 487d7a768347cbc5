/** What a program in a workspace can do to its own files, and what that may not do to the server. */
import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import {
  bodyOf,
  bytes,
  type Fixture,
  hasKernelWay,
  path,
  refusal,
  testBoth,
  until,
  withStore,
} from "./fixture.ts";
import { hasAttributes, run, withAttribute } from "./attributes.ts";

const NO_KERNEL_WAY = "no openat2 here";

function programAt(name: string): string {
  return new URL(`./programs/${name}`, import.meta.url).pathname;
}

/** Runs `body` while another process holds a write lease on a file, which it gives back only by its death. */
async function withLease(file: string, body: () => Promise<void>): Promise<void> {
  const args = ["run", "-A", "--no-check", programAt("lease_holder.ts"), file];
  const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped", env: { NO_COLOR: "1" } }).spawn();
  const reader = child.stdout.getReader();
  try {
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("taken\n");
    await body();
  } finally {
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
  }
}

for (const [size, length] of [["small", 1000], ["large", 200_000]] as const) {
  testIf(
    hasKernelWay,
    NO_KERNEL_WAY,
    `open() of a ${size} file under another's lease is refused at once, and stops nothing`,
    () =>
      withStore("kernel", async ({ store, workspace, at }) => {
        // Not by an upload: a file that the store has read before would not be opened again.
        await Deno.writeFile(at("leased"), new Uint8Array(length).fill(65));
        let ticks = 0;
        const ticking = setInterval(() => ticks++, 1);
        try {
          await withLease(at("leased"), async () => {
            for (let round = 0; round < 3; round++) {
              const [begunAt, before] = [performance.now(), ticks];
              expect(await refusal(() => store.open(workspace, path("leased")))).toBe("unavailable");
              expect(performance.now() - begunAt).toBeLessThan(2000);
              await until(() => ticks > before, "the event loop to go on");
            }
            expect((await store.stat(workspace, path("leased"))).sizeBytes).toBe(length);
          });
        } finally {
          clearInterval(ticking);
        }
        const file = await store.open(workspace, path("leased"));
        const read = await new Response(await file.stream(0, length)).bytes();
        expect(read.length).toBe(length);
      }),
  );
}

/** Tries to replace and to remove `name`; returns how each ended and whether one came as far as becoming visible. */
async function tryToChange({ put, store, workspace }: Fixture, name: string) {
  let visible = false;
  const beforeVisible = () => void (visible = true);
  const replaced = await refusal(() => put(name, "new", { beforeVisible }));
  const removed = await refusal(() => store.remove(workspace, path(name), { beforeVisible }));
  return { replaced, removed, visible };
}

for (const containment of ["kernel", "portable"] as const) {
  for (const [letter, what] of [["i", "an immutable"], ["a", "an append-only"]] as const) {
    testIf(
      hasAttributes && (containment === "portable" || hasKernelWay),
      "no file can be made immutable by this user here",
      `${what} file is permission_denied to change, and keeps its bytes (${containment})`,
      () =>
        withStore(containment, async (fixture) => {
          await fixture.put("fixed", "old");
          await withAttribute(fixture.at("fixed"), letter, async () => {
            const { replaced, removed, visible } = await tryToChange(fixture, "fixed");
            expect([replaced, removed]).toEqual(["permission_denied", "permission_denied"]);
            // Nothing is spent on it; but the portable way cannot see it before: there the change itself fails.
            expect(visible).toBe(containment === "portable");
            expect(await Deno.readTextFile(fixture.at("fixed"))).toBe("old");
            expect(fixture.staged()).toEqual([]);
          });
          expect(await tryToChange(fixture, "fixed")).toMatchObject({ replaced: "accepted" });
        }),
    );
  }
}

testIf(
  hasAttributes && hasKernelWay,
  "no file can be made immutable by this user here",
  "a file that becomes immutable while its next version arrives is refused before anything is spent",
  () =>
    withStore("kernel", async ({ put, store, workspace, at }) => {
      await put("fixed", "old");
      const upload = await store.beginUpload(workspace, path("fixed"), { maxBytes: 10, fromOutside: false });
      await upload.receive(bodyOf(bytes("new")));
      let visible = false;
      await withAttribute(at("fixed"), "i", async () => {
        const committing = () => upload.commit({ beforeVisible: () => void (visible = true) });
        expect(await refusal(committing)).toBe("permission_denied");
      });
      expect(visible).toBe(false);
      expect(await Deno.readTextFile(at("fixed"))).toBe("old");
    }),
);

/** Runs a command with mounts of its own: in eve's home `vol` and the file `bound`, and all of bob's home. */
async function withMounts(command: string): Promise<string> {
  const root = await Deno.makeTempDir();
  const home = `${root}/workspaces/eve`;
  try {
    await Deno.mkdir(`${home}/vol`, { recursive: true });
    await Deno.mkdir(`${root}/workspaces/bob`);
    await Deno.writeTextFile(`${home}/bound`, "under");
    await Deno.writeTextFile(`${root}/other`, "mounted");
    const script = [
      `mount -t tmpfs none "${home}/vol"`,
      `printf kept > "${home}/vol/file"`,
      `mount --bind "${root}/other" "${home}/bound"`,
      `mount -t tmpfs none "${root}/workspaces/bob"`,
      command.replace("ROOT", root),
    ].join(" && ");
    return await run("unshare", "-Urm", "sh", "-c", script) ?? "";
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

testIf(
  hasKernelWay && await withMounts("echo yes") === "yes\n",
  "nothing can be mounted by this user here",
  "what is mounted in a home is permission_denied before anything is spent; a home may be a mount itself",
  async () => {
    const said = await withMounts(
      `"${Deno.execPath()}" run -A --no-check "${programAt("mounts.ts")}" "ROOT"`,
    );
    const verbs = ["open", "stat", "put", "remove"];
    const refused = ["vol/file", "vol/deep/er", "bound"].flatMap((name) =>
      verbs.map((verb) => [`${verb} ${name}`, "permission_denied"])
    );
    expect(JSON.parse(said)).toEqual({
      outcomes: { ...Object.fromEntries(refused), "put beside": "accepted", home: "accepted" },
      visible: ["put eve/beside", "put bob/deep/file", "remove bob/deep/file"],
      kept: ["kept", "mounted"],
    });
  },
);

testBoth(
  "commit() is unavailable, not not_found, when the home was moved away meanwhile",
  async ({ store, workspace, home }) => {
    for (const name of ["file", "deep/file"]) {
      const upload = await store.beginUpload(workspace, path(name), { maxBytes: 10, fromOutside: false });
      await upload.receive(bodyOf(bytes("new")));
      await Deno.rename(home, `${home}.aside`);
      try {
        expect(await refusal(() => upload.commit()), name).toBe("unavailable");
      } finally {
        await Deno.rename(`${home}.aside`, home);
      }
      expect(await refusal(() => store.stat(workspace, path(name)))).toBe("not_found");
    }
  },
);
