/** `string agent capability mint | list | revoke`. Source: System API, "Minting" and "CLI". */
import { type Command, Option } from "commander";
import { DURATION_EXAMPLES, tryParseDuration } from "../base/durations.ts";
import { findNamedAgent, requireAgent } from "./agent_choice.ts";
import { toListingLines, toMintedLines } from "./capability_text.ts";
import { type Client, createClient } from "./client.ts";
import { CliFailure, EXIT, usageFailure } from "./failure.ts";
import { listField, optionalField, textField } from "./fields.ts";
import { addClientFlags, type ClientFlags, toExamples } from "./help.ts";
import type { Invocation } from "./invocation.ts";
import { locateServer } from "./locate.ts";
import { printJson, printLine, printNote } from "./output.ts";

const PAGE = 1000;

interface MintFlags extends ClientFlags {
  readonly path?: string;
  readonly verbs?: string;
  readonly ttl?: string;
  readonly singleUse?: boolean;
  readonly agent?: string;
  readonly author?: string;
}

interface ListFlags extends ClientFlags {
  readonly agent?: string;
  readonly all?: boolean;
}

/** What a mint asks for, as it is sent. */
interface Grant {
  readonly path_prefix: string;
  readonly verbs: readonly string[];
  readonly ttl_ms: number;
}

/** Reads the flags that every mint needs. Not left to the parser: it would hide a misspelt flag behind a missing one. */
function requireGrant({ path, verbs, ttl }: MintFlags): Grant {
  const missing = Object.entries({ path, verbs, ttl }).filter(([, value]) => value === undefined);
  if (path === undefined || verbs === undefined || ttl === undefined) {
    const names = missing.map(([name]) => `--${name}`).join(", ");
    throw usageFailure(`Cannot mint: ${names} must be given`, "See: string agent capability mint --help");
  }
  return {
    path_prefix: requirePath(path),
    // What is a verb is the server's to say: it refuses everything that executes.
    verbs: verbs.split(",").map((verb) => verb.trim().toUpperCase()).filter((verb) => verb !== ""),
    ttl_ms: requireTtl(ttl),
  };
}

/** Reads a path as people write one: relative, or `string://…` as references are. An absolute one is a mistake. */
function requirePath(path: string): string {
  if (path.startsWith("string://")) return path.slice("string://".length);
  if (!path.startsWith("/")) return path;
  throw usageFailure(
    `Cannot use --path "${path}": it is relative to the agent's workspace and has no leading slash`,
    'Give for example inbox/discord, or "" for the whole workspace',
  );
}

interface MintRequest {
  readonly grant: Grant;
  readonly flags: MintFlags;
}

async function mint(
  client: Client,
  { env, output }: Invocation,
  { grant, flags }: MintRequest,
): Promise<void> {
  const answer = await client.request("POST", "/capabilities", {
    ...grant,
    agent_id: await requireAgent(flags.agent, env, client),
    single_use: flags.singleUse ?? false,
    ...(flags.author === undefined ? {} : { author: flags.author }),
  });
  if (flags.json) return printJson(output, answer);
  for (const line of toMintedLines(answer)) printLine(output, line);
  const path = textField(answer, "path_prefix").split("/").map(encodeURIComponent).join("/");
  printNote(
    output,
    `Use it at ${client.url}/fs/${path} with 'Authorization: Bearer <secret>' or '?cap=<secret>'`,
  );
}

function requireTtl(text: string): number {
  const ttlMs = tryParseDuration(text);
  if (ttlMs !== undefined && ttlMs > 0) return ttlMs;
  throw usageFailure(`Cannot use --ttl: it must be ${DURATION_EXAMPLES}, got "${text}"`);
}

/** Reads all pages. */
async function listAll(client: Client, agentId: string | undefined): Promise<Record<string, unknown>[]> {
  const records: Record<string, unknown>[] = [];
  const seen = new Set<string>();
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (agentId !== undefined) query.set("agent_id", agentId);
  while (true) {
    const answer = await client.request("GET", `/capabilities?${query}`);
    records.push(...listField(answer, "capabilities"));
    const cursor = optionalField(answer, "cursor");
    if (cursor === undefined) return records;
    if (seen.has(cursor)) {
      throw new CliFailure(EXIT.failed, "Cannot list: the server gives the same page again and again");
    }
    seen.add(cursor);
    query.set("cursor", cursor);
  }
}

async function list(client: Client, { env, output }: Invocation, flags: ListFlags): Promise<void> {
  const agentId = flags.all ? undefined : await findNamedAgent(flags.agent, env, client);
  const capabilities = await listAll(client, agentId);
  if (flags.json) return printJson(output, { capabilities });
  for (const line of toListingLines(capabilities)) printLine(output, line);
}

async function revoke(client: Client, { output }: Invocation, id: string, flags: ClientFlags): Promise<void> {
  const answer = await client.request("DELETE", `/capabilities/${encodeURIComponent(id)}`);
  if (flags.json) return printJson(output, answer);
  const name = textField(answer, "token_id");
  printLine(output, answer["revoked"] === true ? `Revoked ${name}` : `${name} was dead already`);
}

/** Refuses a secret where an id belongs, before it reaches a URL. */
function requireId(id: string): string {
  if (!id.startsWith("caps_")) return id;
  throw usageFailure(
    "Cannot revoke by secret: what begins with caps_ is the secret, the id begins with cap_",
    "Find the id with: string agent capability list",
  );
}

function addMintCommand(capability: Command, invocation: Invocation): void {
  addClientFlags(capability.command("mint").description("make a capability; its secret is shown once"))
    .option("--path <path>", 'file or folder in the workspace; "" is the whole workspace (required)')
    .option("--verbs <list>", "what it allows, of put, get, delete and stat, with commas (required)")
    .option("--ttl <duration>", "how long it lives: 90s, 15m, 1h, 7d (required)")
    .option("--single-use", "let its first success be its last")
    .option(
      "--agent <id>",
      "whose workspace (env: STRING_AGENT_ID; else what `agent use` chose, else the only agent)",
    )
    .addOption(
      new Option(
        "--author <who>",
        "`agent`: what is written with it counts as the agent's own and gets no mark",
      )
        .choices(["agent"]),
    )
    .addHelpText(
      "after",
      toExamples([
        "string agent capability mint --path inbox/discord --verbs put,stat --ttl 1h",
        "string agent capability mint --path outbox/report.pdf --verbs get --ttl 15m --single-use",
      ]),
    )
    .action(async (flags: MintFlags) => {
      const grant = requireGrant(flags);
      using client = createClient(await locateServer(invocation.env, flags.data));
      await mint(client, invocation, { grant, flags });
    });
}

/** Adds `capability` and its commands below `agent`. */
export function addCapabilityCommands(agent: Command, invocation: Invocation): void {
  const capability = agent.command("capability")
    .description("capabilities: narrow, revocable grants into an agent's workspace")
    .addHelpText(
      "after",
      toExamples([
        "string agent capability mint --path inbox/discord --verbs put,stat --ttl 1h",
        "string agent capability list",
        "string agent capability revoke cap_abc123",
      ]),
    );
  addMintCommand(capability, invocation);

  addClientFlags(
    capability.command("list").description("list capabilities, newest first, without their secrets"),
  )
    .option("--agent <id>", "only this agent's (env: STRING_AGENT_ID; else what `agent use` chose, else all)")
    .option("--all", "those of all agents, whichever was chosen")
    .addHelpText(
      "after",
      toExamples(["string agent capability list", "string agent capability list --all --json"]),
    )
    .action(async (flags: ListFlags) => {
      using client = createClient(await locateServer(invocation.env, flags.data));
      await list(client, invocation, flags);
    });

  addClientFlags(capability.command("revoke <id>").description("end a capability, from the next request on"))
    .addHelpText("after", toExamples(["string agent capability revoke cap_abc123"]))
    .action(async (id: string, flags: ClientFlags) => {
      const tokenId = requireId(id);
      using client = createClient(await locateServer(invocation.env, flags.data));
      await revoke(client, invocation, tokenId, flags);
    });
}
