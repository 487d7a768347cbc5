/** The program: hands the arguments to the command line and ends with its exit code. */
import { runCli } from "./cli/main.ts";

Deno.exit(await runCli(Deno.args));
