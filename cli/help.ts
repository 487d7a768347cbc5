/** What all help pages and client commands share. */
import type { Command } from "commander";

/** Returns the examples at the end of a help page. */
export function toExamples(lines: readonly string[]): string {
  return `\n${lines.length === 1 ? "Example" : "Examples"}:\n${
    lines.map((line) => `  ${line}`).join("\n")
  }\n`;
}

/** Flags of every command that talks to a server. */
export interface ClientFlags {
  readonly data?: string;
  readonly json?: boolean;
}

/** Adds the flags of every command that talks to a server, and returns the command. */
export function addClientFlags(command: Command): Command {
  return command
    .option("--json", "print one JSON document")
    .option(
      "--data <folder>",
      "data folder of the server on this host (default: ./string-data; env: STRING_DATA)",
    );
}
