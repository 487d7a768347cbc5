/** Folders that live as long as a test. */

/** Runs `use` with a fresh folder, in `dir` where one is given, and removes it with all that is in it. */
export async function withFolder(use: (folder: string) => Promise<void>, dir?: string): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "string-test-", ...(dir === undefined ? {} : { dir }) });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
