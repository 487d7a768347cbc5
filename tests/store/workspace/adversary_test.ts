/**
 * An agent's program swaps a folder for a link to the outside while the server reads, writes and removes.
 *
 * The same hunt is run against a naive opener, which must be caught: else the hunt would prove nothing (report 17).
 */
import { AppError } from "../../../base/errors.ts";
import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { bodyOf, bytes, type Fixture, hasKernelWay, path, withStore } from "./fixture.ts";

const SWAPPER = new URL("./programs/swapper.ts", import.meta.url).pathname;
const INSIDE = "inside";
const CANARY = "outside: nobody may read this";
const ROUNDS = 4000;

/** What is hunted: the three ways in which bytes move. */
interface Prey {
  read(relative: string): Promise<string>;
  write(relative: string, content: string): Promise<void>;
  remove(relative: string): Promise<void>;
}

interface Bag {
  /** Operations that met the link and were refused. */
  refused: number;
  /** Operations that met the folder and did their work. */
  served: number;
  /** Bytes of the outside that were read, files of it that were written or removed. */
  escapes: number;
}

async function hunt({ root, at }: Fixture, prey: Prey, rounds: number): Promise<Bag> {
  const outside = `${root}/outside`;
  await Deno.mkdir(`${outside}/deep`, { recursive: true });
  await Deno.mkdir(at("in/swapped/deep"), { recursive: true });
  const canaries = ["canary", "deep/canary", "removable"];
  for (const name of canaries) {
    await Deno.writeTextFile(`${outside}/${name}`, CANARY);
    await Deno.writeTextFile(at(`in/swapped/${name}`), INSIDE);
  }
  await Deno.symlink(outside, at("in/link"));
  const args = ["run", "-A", "--no-check", SWAPPER, at("in/swapped"), at("in/link")];
  const swapper = new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
  const reader = swapper.stdout.getReader();
  await reader.read();
  const bag: Bag = { refused: 0, served: 0, escapes: 0 };
  const attempt = async (operation: () => Promise<string | void>) => {
    try {
      if (await operation() === CANARY) bag.escapes++;
      else bag.served++;
    } catch (error) {
      if (error instanceof AppError && error.code === "symlink") bag.refused++;
      // What was removed is missing; the naive prey says so in the system's words.
      else if (!(error instanceof AppError || error instanceof Deno.errors.NotFound)) throw error;
    }
  };
  try {
    for (let round = 0; round < rounds; round++) {
      await attempt(() => prey.read("in/swapped/canary"));
      await attempt(() => prey.read("in/swapped/deep/canary"));
      if (round % 4 !== 0) continue;
      await attempt(() => prey.write(`in/swapped/new-${round}`, INSIDE));
      await attempt(() => prey.write(`in/swapped/made/${round}/deep`, INSIDE));
      await attempt(() => prey.remove("in/swapped/removable"));
      await attempt(() => prey.write("in/swapped/removable", INSIDE));
    }
  } finally {
    swapper.kill("SIGKILL");
    await swapper.status;
    await reader.cancel();
  }
  const left = [...Deno.readDirSync(outside)].map((entry) => entry.name).sort();
  bag.escapes += Math.abs(left.length - 3) + (left.join() === "canary,deep,removable" ? 0 : 1);
  for (const name of canaries) {
    const content = await Deno.readTextFile(`${outside}/${name}`).catch(() => "removed");
    if (content !== CANARY) bag.escapes++;
  }
  return bag;
}

testIf(
  hasKernelWay,
  "no openat2 here",
  "nothing outside is read, written or removed while a folder and a link are swapped (report 17)",
  () => {
    return withStore("kernel", async (fixture) => {
      const { store, workspace, put, read } = fixture;
      const bag = await hunt(fixture, {
        read,
        write: async (relative, content) => void await put(relative, content),
        remove: async (relative) => void await store.remove(workspace, path(relative)),
      }, ROUNDS);
      expect(bag.escapes).toBe(0);
      // It proves something only if both states were met many times.
      expect(bag.refused).toBeGreaterThan(50);
      expect(bag.served).toBeGreaterThan(50);
      expect(fixture.staged()).toEqual([]);
    });
  },
);

testIf(
  hasKernelWay,
  "no openat2 here",
  "an upload that began inside is not put outside by a swap before its commit (report 17)",
  () => {
    return withStore("kernel", async ({ store, workspace, root, at }) => {
      await Deno.mkdir(`${root}/outside`);
      await Deno.mkdir(at("in"));
      const upload = await store.beginUpload(workspace, path("in/x"), { maxBytes: 100, fromOutside: true });
      await upload.receive(bodyOf(bytes("late")));
      const beforeVisible = async () => {
        await Deno.rename(at("in"), at("was-in"));
        await Deno.symlink(`${root}/outside`, at("in"));
      };
      // The folder that was checked is held: the bytes follow it, not its name.
      await upload.commit({ beforeVisible });
      expect(await Deno.readTextFile(at("was-in/x"))).toBe("late");
      expect([...Deno.readDirSync(`${root}/outside`)]).toEqual([]);
    });
  },
);

testIf(
  hasKernelWay,
  "no openat2 here",
  "the hunt catches an opener that looks first and then opens by path",
  () => {
    return withStore("kernel", async (fixture) => {
      const { at } = fixture;
      const look = async (relative: string) => {
        const segments = relative.split("/");
        for (let length = 1; length < segments.length; length++) {
          const info = await Deno.lstat(at(segments.slice(0, length).join("/")));
          if (info.isSymlink) throw new AppError("symlink", "Cannot follow a link");
        }
      };
      const bag = await hunt(fixture, {
        async read(relative) {
          await look(relative);
          return await Deno.readTextFile(at(relative));
        },
        async write(relative, content) {
          await look(relative);
          await Deno.writeTextFile(at(relative), content);
        },
        async remove(relative) {
          await look(relative);
          await Deno.remove(at(relative));
        },
      }, ROUNDS);
      expect(bag.escapes).toBeGreaterThan(0);
    });
  },
);
