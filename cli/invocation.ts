/** What surrounds one run of the command line, handed in so that a test can hold it. */
import type { Environment } from "../runtime/config.ts";
import { type Output, processOutput } from "./output.ts";

/** The environment and the output of one run. */
export interface Invocation {
  readonly env: Environment;
  readonly output: Output;
}

/** Returns the invocation of this process. */
export function processInvocation(): Invocation {
  return { env: Deno.env.toObject(), output: processOutput() };
}
