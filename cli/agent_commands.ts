/** `string agent create | list | delete | use`. */
import type { Command } from "commander";
import { writeChosenAgent } from "./chosen_agents.ts";
import { type Client, createClient } from "./client.ts";
import { listField, numberField, optionalField, textField } from "./fields.ts";
import { addClientFlags, type ClientFlags, toExamples } from "./help.ts";
import type { Invocation } from "./invocation.ts";
import { locateServer } from "./locate.ts";
import { type Output, printJson, printLine } from "./output.ts";
import { toTable } from "./table.ts";

interface CreateFlags extends ClientFlags {
  readonly webhook?: boolean;
  readonly key?: boolean;
  readonly home?: string;
}

async function create(client: Client, output: Output, id: string, flags: CreateFlags): Promise<void> {
  const answer = await client.request("POST", "/agents", {
    agent_id: id,
    ...(flags.webhook ? { webhook: true } : {}),
    ...(flags.key ? { key: true } : {}),
    ...(flags.home === undefined ? {} : { home: flags.home }),
  });
  if (flags.json) return printJson(output, answer);
  const name = textField(answer, "agent_id");
  printLine(
    output,
    answer["created"] === true ? `Created agent '${name}':` : `Agent '${name}' was there already:`,
  );
  printLine(output, `  home:    ${textField(answer, "home")}`);
  if (optionalField(answer, "webhook_url")) {
    printLine(output, `  webhook: ${textField(answer, "webhook_url")}`);
  }
  if (optionalField(answer, "agent_key")) printLine(output, `  key:     ${textField(answer, "agent_key")}`);
}

async function list(client: Client, output: Output, flags: ClientFlags): Promise<void> {
  const answer = await client.request("GET", "/agents");
  if (flags.json) return printJson(output, answer);
  const agents = listField(answer, "agents");
  printLine(output, `Agents (${agents.length}):`);
  if (agents.length === 0) return;
  const rows = agents.map((agent) =>
    ["agent_id", "created_at", "home"].map((name) => textField(agent, name))
  );
  for (const line of toTable(["AGENT", "CREATED", "HOME"], rows)) printLine(output, line);
}

async function remove(client: Client, output: Output, id: string, flags: ClientFlags): Promise<void> {
  const answer = await client.request("DELETE", `/agents/${encodeURIComponent(id)}`);
  if (flags.json) return printJson(output, answer);
  const name = textField(answer, "agent_id");
  if (answer["deleted"] !== true) return printLine(output, `There was no agent '${name}'`);
  printLine(output, `Deleted agent '${name}'; its files stay:`);
  printLine(output, `  revoked capabilities: ${numberField(answer, "revoked_capabilities")}`);
  printLine(output, `  disposed sessions:    ${numberField(answer, "disposed_sessions")}`);
}

async function use(
  client: Client,
  { env, output }: Invocation,
  id: string,
  flags: ClientFlags,
): Promise<void> {
  const answer = await client.request("GET", `/agents/${encodeURIComponent(id)}`);
  const name = textField(answer, "agent_id");
  await writeChosenAgent(env, client.url, name);
  if (flags.json) printJson(output, { agent_id: name, url: client.url });
  else printLine(output, `Using agent '${name}' on ${client.url}`);
}

/** Adds `agent` and its commands, and returns it for those that stand below it. */
export function addAgentCommands(program: Command, invocation: Invocation): Command {
  const { env, output } = invocation;
  const agent = program.command("agent")
    .description("agents and their capabilities")
    .addHelpText(
      "after",
      toExamples(["string agent create eve --webhook", "string agent list", "string agent use eve"]),
    );

  addClientFlags(agent.command("create <id>").description("make an agent with its workspace"))
    .option("--webhook", "print the agent's webhook URL")
    .option("--key", "make a key for the agent and print it once; an earlier one dies")
    .option(
      "--home <folder>",
      "use this folder as workspace; it must lie in one that the server was given with --homes",
    )
    .addHelpText(
      "after",
      toExamples(["string agent create eve", "string agent create discord-channel --webhook --key"]),
    )
    .action(async (id: string, flags: CreateFlags) => {
      using client = createClient(await locateServer(env, flags.data));
      await create(client, output, id, flags);
    });

  addClientFlags(agent.command("list").description("list the agents"))
    .addHelpText("after", toExamples(["string agent list", "string agent list --json"]))
    .action(async (flags: ClientFlags) => {
      using client = createClient(await locateServer(env, flags.data));
      await list(client, output, flags);
    });

  addClientFlags(
    agent.command("delete <id>").description(
      "end an agent and all capabilities into its workspace; files stay",
    ),
  )
    .addHelpText("after", toExamples(["string agent delete eve"]))
    .action(async (id: string, flags: ClientFlags) => {
      using client = createClient(await locateServer(env, flags.data));
      await remove(client, output, id, flags);
    });

  addClientFlags(agent.command("use <id>").description("choose the agent that later commands are about"))
    .addHelpText("after", toExamples(["string agent use eve"]))
    .action(async (id: string, flags: ClientFlags) => {
      using client = createClient(await locateServer(env, flags.data));
      await use(client, invocation, id, flags);
    });
  return agent;
}
