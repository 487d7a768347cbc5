/** The tree of commands. */
import { Command } from "commander";
import { VERSION } from "../base/version.ts";
import { addAgentCommands } from "./agent_commands.ts";
import { addCapabilityCommands } from "./capability_commands.ts";
import { toExamples } from "./help.ts";
import type { Invocation } from "./invocation.ts";
import { printJson, printLine } from "./output.ts";
import { addServeCommand } from "./serve_command.ts";

const ENVIRONMENT = `
Which server the commands talk to:
  STRING_URL                 its address; else the one in <data>/server.json, else http://127.0.0.1:3923
  STRING_DATA                its data folder on this host; else ./string-data
  STRING_ADMIN_TOKEN[_FILE]  the operator's token (or an agent's key); else <data>/admin.token, else none, which is
                             enough for programs of the server's own user on this machine
  STRING_AGENT_ID            the agent, where none is named

Moving bytes with a capability (curl shown; the verb stat is HEAD):
  curl -T report.pdf -H "Authorization: Bearer $SECRET" http://127.0.0.1:3923/fs/inbox/report.pdf
  curl "http://127.0.0.1:3923/fs/outbox/report.pdf?cap=$SECRET"

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 conflict, 6 unreachable, 7 too large or no space
`;

/** Returns the parser of the whole command line; `exitWith` takes the exit code of a command that chooses one. */
export function createProgram(invocation: Invocation, exitWith: (code: number) => void): Command {
  const { output } = invocation;
  const program = new Command("string")
    .description("A home for agents: files that trusted programs may move in and out, and nothing else")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .showHelpAfterError("(--help shows what there is)")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .addHelpText(
      "after",
      toExamples([
        "string serve",
        "string agent create eve",
        "string agent capability mint --path outbox/report.pdf --verbs get --ttl 15m --single-use",
      ]),
    )
    .addHelpText("after", ENVIRONMENT);
  addServeCommand(program, invocation, exitWith);
  const agent = addAgentCommands(program, invocation);
  addCapabilityCommands(agent, invocation);
  addVersionCommand(program, invocation);
  return program;
}

function addVersionCommand(program: Command, { output }: Invocation): void {
  program.command("version")
    .description("print the version and what it runs on")
    .option("--json", "print one JSON document")
    .addHelpText("after", toExamples(["string version", "string version --json"]))
    .action((options: { json?: boolean }) => {
      const facts = { name: "string", version: VERSION, deno: Deno.version.deno, target: Deno.build.target };
      if (options.json) printJson(output, facts);
      else printLine(output, `string ${VERSION} (deno ${facts.deno}, ${facts.target})`);
    });
}
