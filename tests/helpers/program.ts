/**
 * The program as its users have it: the executable that `STRING_TEST_BINARY` names, else the sources under Deno.
 *
 * Runs in a process of its own with an environment of its own: nothing of the test's `STRING_…` reaches it.
 */
import { fromFileUrl, join, resolve, TextLineStream } from "../../base/std.ts";
import { DEADLINE_MS, until, within } from "./deadline.ts";

const ROOT = fromFileUrl(new URL("../../", import.meta.url));
const named = Deno.env.get("STRING_TEST_BINARY");

/** Absolute path of the executable under test; undefined when the sources are. */
export const BINARY = named === undefined || named === "" ? undefined : resolve(ROOT, named);

/** The command that runs the program; its arguments follow. */
export const PROGRAM: readonly string[] = BINARY === undefined
  ? [Deno.execPath(), "run", "-A", "--no-check", "--config", join(ROOT, "deno.json")]
    .concat(join(ROOT, "main.ts"))
  : [BINARY];

/** Returns `withBinary` when an executable is under test, where one round costs least, else `withSources`. */
export function rounds(withBinary: number, withSources: number): number {
  return BINARY === undefined ? withSources : withBinary;
}

/** What surrounds one run of the program. */
export interface Surroundings {
  /** Added to this process's environment without its `STRING_…`; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** A command that runs the program given behind it, such as `strace`. */
  readonly wrapper?: readonly string[];
  /** What is run instead of `PROGRAM`. */
  readonly program?: readonly string[];
}

function toEnvironment(changes: Surroundings["env"] = {}): Record<string, string> {
  const given = Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("STRING_"));
  const own = Object.fromEntries(given);
  const cache = own["DENO_DIR"] ?? join(own["XDG_CACHE_HOME"] ?? join(own["HOME"] ?? "/", ".cache"), "deno");
  // The sources need Deno's cache also where a test takes HOME away.
  const all = Object.entries({
    ...own,
    DENO_DIR: cache,
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
    ...changes,
  });
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function toCommand(
  args: readonly string[],
  { env, cwd, wrapper = [], program = PROGRAM }: Surroundings,
): Deno.Command {
  const [command = "", ...rest] = [...wrapper, ...program, ...args];
  return new Deno.Command(command, {
    args: rest,
    clearEnv: true,
    env: toEnvironment(env),
    ...(cwd === undefined ? {} : { cwd }),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** What one run of the program did. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command line to its end. */
export async function runString(args: readonly string[], surroundings: Surroundings = {}): Promise<Ran> {
  const running = toCommand(args, surroundings).output();
  const { code, stdout, stderr } = await within(`string ${args.join(" ")}`, running);
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** How a server is started. */
export interface ServeOptions extends Surroundings {
  /** A folder that is there and stays; a fresh one that goes with the server otherwise. "" passes no `--data`. */
  readonly dataFolder?: string;
  readonly args?: readonly string[];
}

/** How a server ended. */
export interface Ended {
  readonly code: number;
  readonly tookMs: number;
  readonly err: string;
}

/** A running `string serve`. Dispose of it: that kills it, and removes its folder if it was made for it. */
export interface Serving extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The server's own process, also behind a wrapper. */
  readonly pid: number;
  readonly dataFolder: string;
  /** Resolves when the process has ended, by whatever cause. */
  readonly ended: Promise<Ended>;
  /** What it has printed so far. */
  out(): string;
  err(): string;
  kill(signal: Deno.Signal): void;
  /** Sends a signal and waits for the end. */
  stop(signal?: Deno.Signal): Promise<Ended>;
}

/** Collects lines as they come. */
function follow(stream: ReadableStream<Uint8Array<ArrayBuffer>>): { text(): string; done: Promise<void> } {
  let text = "";
  const done = (async () => {
    const lines = stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
    for await (const line of lines) text += line + "\n";
  })();
  return { text: () => text, done };
}

/** Starts `string serve` on a free port and returns once it says where it listens. */
export async function serve(options: ServeOptions = {}): Promise<Serving> {
  const made = options.dataFolder === undefined
    ? await Deno.makeTempDir({ prefix: "string-e2e-" })
    : undefined;
  const dataFolder = made ?? options.dataFolder ?? "";
  const folderFlag = dataFolder === "" ? [] : ["--data", dataFolder];
  const startMs = performance.now();
  const child = toCommand(["serve", "--port", "0", ...folderFlag, ...options.args ?? []], options).spawn();
  const out = follow(child.stdout);
  const err = follow(child.stderr);
  let isOver = false;
  let signalledMs = startMs;
  const ended = (async () => {
    const { code } = await child.status;
    isOver = true;
    await Promise.all([out.done, err.done]);
    return { code, tookMs: performance.now() - signalledMs, err: err.text() };
  })();
  const findUrl = () => /listens on (http:\/\/\S+)/.exec(out.text())?.[1];
  let pid = child.pid;
  const kill = (signal: Deno.Signal) => {
    signalledMs = performance.now();
    if (!isOver) Deno.kill(pid, signal);
  };
  const dispose = async () => {
    for (const process of isOver ? [] : [pid, child.pid]) {
      try {
        Deno.kill(process, "SIGKILL");
      } catch {
        // Ended by the first of the two kills, or by itself.
      }
    }
    await ended;
    if (made !== undefined) await Deno.remove(made, { recursive: true });
  };
  try {
    await until("the server says where it listens", () => isOver || findUrl() !== undefined);
    const url = findUrl();
    if (url === undefined) throw new Error(`The server did not start: ${(await ended).err}`);
    if (options.wrapper !== undefined || options.program !== undefined) pid = await findServer(child.pid);
    return {
      url,
      port: Number(new URL(url).port),
      pid,
      dataFolder,
      ended,
      out: out.text,
      err: err.text,
      kill,
      stop(signal = "SIGTERM") {
        kill(signal);
        return within("the server ends", ended, DEADLINE_MS);
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Finds the program behind a wrapper: the wrapper itself when it became the program, else its only child. */
async function findServer(pid: number): Promise<number> {
  const children = (await Deno.readTextFile(`/proc/${pid}/task/${pid}/children`)).trim();
  return children === "" ? pid : Number(children.split(" ")[0]);
}
