/** `string serve`: its flags, taken from the one list of settings. The server itself is loaded only when asked for. */
import { type Command, Option } from "commander";
import type { FlagValues } from "../runtime/config.ts";
import { SETTINGS } from "../runtime/settings.ts";
import { toExamples } from "./help.ts";
import type { Invocation } from "./invocation.ts";

interface FlagSpec {
  readonly flag: string;
  readonly env: string;
  readonly placeholder?: string;
  readonly description: string;
  readonly defaultText?: string;
  readonly list?: boolean;
}

function toOption(setting: FlagSpec): Option {
  const value = setting.placeholder === undefined ? "" : ` <${setting.placeholder}>`;
  const notes = [
    ...(setting.defaultText === undefined ? [] : [`default: ${setting.defaultText}`]),
    `env: ${setting.env}`,
  ];
  const option = new Option(`--${setting.flag}${value}`, `${setting.description} (${notes.join("; ")})`);
  if (setting.list) {
    option.argParser<string[] | undefined>((text, earlier) => [...(earlier ?? []), text]);
  }
  return option;
}

/** Adds `serve`. */
export function addServeCommand(
  program: Command,
  invocation: Invocation,
  exitWith: (code: number) => void,
): void {
  const serve = program.command("serve").description("start the server");
  for (const setting of Object.values(SETTINGS)) {
    if ("flag" in setting) serve.addOption(toOption(setting));
  }
  serve
    .addHelpText(
      "after",
      toExamples([
        "string serve",
        "string serve --port 0 --data /srv/string",
        "string serve --public-url https://string.example.org --trusted-hops 1 --role production",
        "STRING_DB_TOKEN_FILE=/run/secrets/db string serve --db libsql://db.example.org",
      ]),
    )
    .action(async (flags: FlagValues) => {
      // Clients must not wait for the database and the router to load.
      const { serve } = await import("./serve.ts");
      exitWith(await serve(flags, invocation));
    });
}
