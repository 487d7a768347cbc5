/** Attributes by which a file cannot be changed, not even by root: immutable, append-only. */

/** Runs a program of the host; returns what it printed, or undefined where it failed or is not installed. */
export async function run(command: string, ...args: string[]): Promise<string | undefined> {
  try {
    const output = await new Deno.Command(command, { args, stderr: "null" }).output();
    return output.success ? new TextDecoder().decode(output.stdout) : undefined;
  } catch {
    return undefined; // not installed: the test says so
  }
}

async function canSetAttributes(): Promise<boolean> {
  const file = await Deno.makeTempFile();
  const set = await run("chattr", "+i", file) !== undefined;
  if (set) await run("chattr", "-i", file);
  await Deno.remove(file);
  return set;
}

/** Whether this user may set attributes, and the file system of temporary files has them. */
export const hasAttributes: boolean = await canSetAttributes();

/** Sets an attribute of a file (`i` immutable, `a` append-only) for the time of `body`. */
export async function withAttribute(
  file: string,
  letter: "i" | "a",
  body: () => Promise<void>,
): Promise<void> {
  if (await run("chattr", `+${letter}`, file) === undefined) throw new Error("Cannot set the attribute");
  try {
    await body();
  } finally {
    await run("chattr", `-${letter}`, file);
  }
}
