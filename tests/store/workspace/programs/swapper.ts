/**
 * The adversary: swaps a folder of the workspace and a link to an outside folder, as fast as it can, until it is killed.
 *
 * Arguments: the folder's path and the link's. With renameat2(RENAME_EXCHANGE) where there is FFI, so that at every
 * moment something is there; else by two renames.
 */
const [folder = "", link = ""] = Deno.args;
const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;

function createSwap(): () => void {
  try {
    const libc = Deno.dlopen("libc.so.6", {
      renameat2: { parameters: ["i32", "buffer", "i32", "buffer", "u32"], result: "i32" },
    });
    const [from, to] = [folder, link].map((name) => new TextEncoder().encode(`${name}\0`));
    if (from === undefined || to === undefined) throw new TypeError("two paths are needed");
    return () => {
      const result = libc.symbols.renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
      if (result !== 0) throw new Error("cannot swap");
    };
  } catch {
    return () => {
      Deno.renameSync(folder, `${folder}.aside`);
      Deno.renameSync(link, folder);
      Deno.renameSync(folder, link);
      Deno.renameSync(`${folder}.aside`, folder);
    };
  }
}

const swap = createSwap();
await Deno.stdout.write(new TextEncoder().encode("swapping\n"));
for (let round = 0;; round++) {
  swap();
  // Lets each state last a little, or a reader would hardly ever see one whole.
  for (let spin = 0; spin < (round % 7) * 300; spin++) Math.sqrt(spin);
}
