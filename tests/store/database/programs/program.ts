/** Runs a program of this folder in a process of its own, and talks with it by lines. */
import { fromFileUrl, TextLineStream } from "../../../../base/std.ts";

/** A running program. */
export interface Program {
  /** Waits for the next line it prints; fails when it ends instead. */
  line(): Promise<string>;
  say(line: string): Promise<void>;
  /** Closes its input and waits for its end. Returns the exit code. */
  end(): Promise<number>;
}

/** Starts `name` (a file beside this one) with `args`, under `wrapper` where one is given. */
export function startProgram(
  name: string,
  args: readonly string[],
  wrapper: readonly string[] = [],
): Program {
  const file = fromFileUrl(new URL(name, import.meta.url));
  const command = [...wrapper, Deno.execPath(), "run", "-A", "--no-check", file, ...args];
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
    env: { DENO_NO_UPDATE_CHECK: "1" },
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  const input = child.stdin.getWriter();
  return {
    async line() {
      const { value, done } = await lines.read();
      if (done) throw new Error(`${name} ended without a word`);
      return value;
    },
    async say(line) {
      await input.write(new TextEncoder().encode(line + "\n"));
    },
    async end() {
      await input.close();
      while (!(await lines.read()).done);
      return (await child.status).code;
    },
  };
}

/** For the programs: the lines of standard input. */
export function inputLines(): AsyncIterable<string> {
  return Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
}
