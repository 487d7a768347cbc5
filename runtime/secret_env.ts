/** Secrets that come from a file, so that they stand neither on a command line nor in a unit's environment. */
import { OperatorError } from "../base/operator_error.ts";
import type { Environment } from "./config.ts";

/**
 * Returns the environment with `NAME` filled from the file that `NAME_FILE` names, for each of `names`.
 *
 * White space around the content is dropped. Refuses (OperatorError) both at once, a file that cannot be read and
 * an empty one.
 */
export async function withSecretFiles(env: Environment, names: readonly string[]): Promise<Environment> {
  const filled: Record<string, string | undefined> = { ...env };
  for (const name of names) {
    const path = env[`${name}_FILE`];
    if (path === undefined || path === "") continue;
    if (env[name]) {
      throw new OperatorError(
        "usage",
        `Cannot use ${name} and ${name}_FILE together`,
        "Unset one of the two",
      );
    }
    filled[name] = await readSecret(`${name}_FILE`, path);
  }
  return filled;
}

async function readSecret(variable: string, path: string): Promise<string> {
  let text: string;
  try {
    text = (await Deno.readTextFile(path)).trim();
  } catch (error) {
    throw new OperatorError(
      "usage",
      `Cannot read the file "${path}" that ${variable} names`,
      "Check that it is there and readable for this user",
      error,
    );
  }
  if (text !== "") return text;
  throw new OperatorError("usage", `The file "${path}" that ${variable} names is empty`);
}
