/** Which agent was chosen with `string agent use`, per server: a small file in the user's own configuration. */
import { writeFileAtomic } from "../base/atomic_file.ts";
import { isAbsolute, join } from "../base/std.ts";
import type { Environment } from "../runtime/config.ts";
import { CliFailure, EXIT } from "./failure.ts";

function tryLocateFolder(env: Environment): string | undefined {
  const configHome = env["XDG_CONFIG_HOME"];
  if (configHome !== undefined && isAbsolute(configHome)) return join(configHome, "string");
  const home = env["HOME"];
  return home !== undefined && isAbsolute(home) ? join(home, ".config", "string") : undefined;
}

async function readChoices(folder: string): Promise<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(await Deno.readTextFile(join(folder, "agents.json")));
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
  } catch {
    return {}; // none yet, or not ours to read: then nothing was chosen
  }
}

/** Returns the agent that was chosen for the server at `url`, or undefined. */
export async function readChosenAgent(env: Environment, url: string): Promise<string | undefined> {
  const folder = tryLocateFolder(env);
  if (folder === undefined) return undefined;
  const choices = await readChoices(folder);
  const chosen = Object.hasOwn(choices, url) ? choices[url] : undefined;
  return typeof chosen === "string" && chosen !== "" ? chosen : undefined;
}

/** Keeps the choice for the server at `url` (0600). Refuses where the user has no place for configuration. */
export async function writeChosenAgent(env: Environment, url: string, agentId: string): Promise<void> {
  const folder = tryLocateFolder(env);
  if (folder === undefined) {
    throw new CliFailure(
      EXIT.failed,
      "Cannot keep the choice: neither XDG_CONFIG_HOME nor HOME names a folder",
      `Set STRING_AGENT_ID=${agentId} instead`,
    );
  }
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    const choices = { ...await readChoices(folder), [url]: agentId };
    writeFileAtomic(join(folder, "agents.json"), JSON.stringify(choices, null, 2) + "\n", { mode: 0o600 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliFailure(
      EXIT.failed,
      `Cannot keep the choice: ${why}`,
      `Set STRING_AGENT_ID=${agentId} instead`,
    );
  }
}
