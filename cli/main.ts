/** Runs one command line and returns its exit code; nothing below ends the process. */
import { CommanderError } from "commander";
import { EXIT, toFailure } from "./failure.ts";
import { type Invocation, processInvocation } from "./invocation.ts";
import { printProblem } from "./output.ts";
import { createProgram } from "./program.ts";

/** Runs the command that `args` name. Everything that goes wrong is on standard error. */
export async function runCli(
  args: readonly string[],
  invocation: Invocation = processInvocation(),
): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram(invocation, (code) => exitCode = code);
  try {
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (error) {
    // The parser has printed its own sentence already; 0 is a help page or the version that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const failure = toFailure(error);
    printProblem(invocation.output, failure.message, failure.hint);
    return failure.exitCode;
  }
}
