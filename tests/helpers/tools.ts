/** Programs of the machine that tests use, and whether they are there. */

/** What a run of a tool gave. */
export interface ToolRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command to its end. */
export async function runTool(
  command: readonly string[],
  options: { readonly cwd?: string; readonly stdin?: string } = {},
): Promise<ToolRun> {
  const child = new Deno.Command(command[0] ?? "", {
    args: command.slice(1),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdin: options.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const output = child.output();
  if (options.stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(options.stdin));
    await writer.close();
  }
  const { code, stdout, stderr } = await output;
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** Returns whether a command is there and succeeds. */
export async function canRun(...command: string[]): Promise<boolean> {
  try {
    return (await runTool(command)).code === 0;
  } catch {
    return false; // no such program here
  }
}

/** Whether there is a curl. */
export const HAS_CURL = await canRun("curl", "--version");
/** What a skipped test says when there is none. */
export const NEEDS_CURL = "there is no curl here";

/**
 * Returns the command that runs another one where it may mount file systems that nobody else sees, or undefined.
 *
 * The command keeps its process id. Root needs no namespace of users; others get one where the kernel lets them.
 */
export async function findMountNamespace(): Promise<readonly string[] | undefined> {
  const script = 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s';
  for (const command of [["unshare", "-m"], ["unshare", "-Urm"]]) {
    if (await canRun(...command, "sh", "-c", script)) return command;
  }
  return undefined;
}
