/** Which agent a command is about. Source: System API, "CLI"; the only one counts as chosen. */
import type { Environment } from "../runtime/config.ts";
import { readChosenAgent } from "./chosen_agents.ts";
import type { Client } from "./client.ts";
import { CliFailure, EXIT, usageFailure } from "./failure.ts";
import { listField, textField } from "./fields.ts";

const MAX_NAMED = 20;

/** Returns the agent that was named: `--agent`, else `STRING_AGENT_ID`, else the one chosen for this server. */
export async function findNamedAgent(
  flag: string | undefined,
  env: Environment,
  client: Client,
): Promise<string | undefined> {
  return flag ?? (env["STRING_AGENT_ID"] || undefined) ?? await readChosenAgent(env, client.url);
}

/** Returns the agent that was named, else the only one. Refuses none and several, naming them. */
export async function requireAgent(
  flag: string | undefined,
  env: Environment,
  client: Client,
): Promise<string> {
  const named = await findNamedAgent(flag, env, client);
  if (named !== undefined) return named;
  const agents = listField(await client.request("GET", "/agents"), "agents").map((agent) =>
    textField(agent, "agent_id")
  );
  const [only] = agents;
  if (only === undefined) {
    throw new CliFailure(EXIT.notFound, "There is no agent yet", "Create one with: string agent create ID");
  }
  if (agents.length === 1) return only;
  const names = agents.slice(0, MAX_NAMED).join(", ") + (agents.length > MAX_NAMED ? ", …" : "");
  throw usageFailure(
    `Cannot tell which agent is meant: there are ${names}`,
    "Name one with --agent ID or STRING_AGENT_ID, or choose one with: string agent use ID",
  );
}
