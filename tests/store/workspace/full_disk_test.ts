import { expect } from "../../helpers/expect.ts";
import { testIf } from "../../helpers/skip.ts";
import { hasKernelWay } from "./fixture.ts";

const PROGRAM = new URL("./programs/full_disk.ts", import.meta.url).pathname;

async function onSmallDisk(command: string): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    const script = `mount -t tmpfs -o size=1m none "${folder}" && ${command.replace("FOLDER", folder)}`;
    const args = ["-Urm", "sh", "-c", script];
    const output = await new Deno.Command("unshare", { args, stderr: "null" }).output();
    return output.success ? new TextDecoder().decode(output.stdout) : "";
  } catch {
    return ""; // no unshare here: the test says so
  } finally {
    await Deno.remove(folder);
  }
}

const canMount = await onSmallDisk("echo yes") === "yes\n";

for (const containment of ["kernel", "portable"]) {
  testIf(
    canMount && (containment === "portable" || hasKernelWay),
    "no small disk can be mounted by this user here",
    `a disk that fills up during an upload is disk_full, and the old file stays (${containment})`,
    async () => {
      const deno = `"${Deno.execPath()}" run -A --no-check "${PROGRAM}" "FOLDER" ${containment}`;
      expect(JSON.parse(await onSmallDisk(deno))).toEqual({
        outcomes: ["accepted", "disk_full readable", "accepted", "accepted"],
        left: 0,
        size: 120_000,
      });
    },
  );
}
