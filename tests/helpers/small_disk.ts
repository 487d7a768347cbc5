/** A server whose data folder lies on a small disk of its own, that a test can fill. */
import { join } from "../../base/std.ts";
import { serve, type Serving } from "./program.ts";
import { findMountNamespace } from "./tools.ts";

/** The namespace that the disk is mounted in; undefined where that is not permitted. */
export const NAMESPACE = await findMountNamespace();
/** What a skipped test says then. */
export const NEEDS_NAMESPACE = "no file system can be mounted here (unshare -m, unshare -Urm)";

/** A small disk under a running server. */
export interface SmallDisk {
  readonly server: Serving;
  /** The data folder as this process reaches it, through the server's own root. */
  readonly dataFolder: string;
  freeBytes(): Promise<number>;
  /** Writes a file beside the data folder until only `leave` bytes are free. */
  fill(leave: number): Promise<void>;
  /** Removes it. */
  empty(): Promise<void>;
}

/** Runs `use` with a server on a disk of `sizeMiB`. */
export async function withSmallDisk(
  options: { readonly sizeMiB: number; readonly args: readonly string[] },
  use: (disk: SmallDisk) => Promise<void>,
): Promise<void> {
  const mountPoint = await Deno.makeTempDir({ prefix: "string-disk-" });
  const mount = `mount -t tmpfs -o size=${options.sizeMiB}m none '${mountPoint}' && exec "$@"`;
  const wrapper = [...NAMESPACE ?? [], "sh", "-c", mount, "sh"];
  try {
    await using server = await serve({
      wrapper,
      dataFolder: join(mountPoint, "data"),
      args: options.args,
    });
    const disk = `/proc/${server.pid}/root${mountPoint}`;
    const filler = join(disk, "filler");
    const freeBytes = async () => {
      const { stdout } = await new Deno.Command("stat", { args: ["-f", "-c", "%a %S", disk] }).output();
      const [blocks = 0, size = 0] = new TextDecoder().decode(stdout).trim().split(" ").map(Number);
      return blocks * size;
    };
    await use({
      server,
      dataFolder: join(disk, "data"),
      freeBytes,
      async fill(leave) {
        using file = await Deno.open(filler, { append: true, create: true });
        for (let free = await freeBytes(); free > leave; free = await freeBytes()) {
          await file.write(new Uint8Array(Math.min(free - leave, 2 ** 20)));
        }
      },
      empty: () => Deno.remove(filler),
    });
  } finally {
    await Deno.remove(mountPoint);
  }
}
