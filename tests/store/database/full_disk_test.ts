import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { startProgram } from "./programs/program.ts";

const UNSHARE = ["unshare", "-Urm"];

async function canMount(): Promise<boolean> {
  try {
    const script = 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s';
    const [command, ...args] = [...UNSHARE, "sh", "-c", script];
    return (await new Deno.Command(command!, { args, stderr: "null", stdout: "null" }).output()).success;
  } catch {
    return false; // no such program here
  }
}

testIf(
  await canMount(),
  "a tmpfs cannot be mounted here with unshare -Urm",
  "report S2: a full disk is disk_full, stores nothing of what it refuses, spares what still fits, and heals",
  async () => {
    const folder = await Deno.makeTempDir();
    const program = startProgram("full_disk.ts", [folder], UNSHARE);
    expect(JSON.parse(await program.line())).toEqual({
      alone: ["disk_full"],
      stored: false,
      together: ["stored", "disk_full", "stored"],
      small: "2",
      after: ["stored"],
      check: "ok",
    });
    expect(await program.end()).toBe(0);
    await Deno.remove(folder);
  },
);
