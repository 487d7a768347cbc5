/** Starts the server: configuration, data folder, services, listener; and takes them down in the other order. */
import { createLog } from "../base/log.ts";
import { createHandler } from "../routes/app.ts";
import { type FlagValues, parseServerConfig } from "../runtime/config.ts";
import { type Context, createContext } from "../runtime/context.ts";
import { EXIT_CLEAN, type Listening, runServer } from "../runtime/server.ts";
import { withSecretFiles } from "../runtime/secret_env.ts";
import { type DataFolder, openDataFolder } from "../store/data_folder/open.ts";
import type { Invocation } from "./invocation.ts";
import { printLine } from "./output.ts";

const SECRETS = ["STRING_DB_TOKEN", "STRING_SECRET_KEY"];
/** How long closing may take, in milliseconds; a database that has gone away must not hold the process. */
const CLOSE_MS = 5000;
const FORCED_CLOSE_MS = 500;

/** Waits for `work`, but not longer than `ms`. Returns whether it was done in time. */
async function within(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), ms));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs the server until a signal stops it, and returns the exit code.
 *
 * Throws OperatorError for everything that the operator can put right.
 */
export async function serve(flags: FlagValues, { env: given, output }: Invocation): Promise<number> {
  const env = await withSecretFiles(given, SECRETS);
  const config = parseServerConfig(flags, env);
  const log = createLog({
    level: config.logLevel,
    format: output.isTerminal ? "text" : "json",
    write: output.err,
    now: Date.now,
  });
  const folder = await openDataFolder(config.dataFolder, {
    shared: config.shared,
    secretKey: env["STRING_SECRET_KEY"] || undefined,
  });
  try {
    const context = await createContext(config, folder, log);
    let exitCode = 1;
    try {
      return exitCode = await runServer({
        handler: createHandler(context),
        host: config.host,
        port: config.port,
        graceMs: config.graceMs,
        log,
        onListen: (listening) =>
          announce(listening, { context, folder, print: (line) => printLine(output, line) }),
        onDrain: () => context.beginDrain(),
      });
    } finally {
      await folder.removeServerRecord();
      const inTime = await within(exitCode === EXIT_CLEAN ? CLOSE_MS : FORCED_CLOSE_MS, context.close());
      if (!inTime) log.warn("stopped before everything was closed");
    }
  } finally {
    folder.close();
  }
}

interface Announcement {
  readonly context: Context;
  readonly folder: DataFolder;
  print(line: string): void;
}

/** Makes the address known: to the services that give out URLs, to clients on this host, and to the operator. */
async function announce(listening: Listening, { context, folder, print }: Announcement): Promise<void> {
  context.setListening(listening);
  await folder.writeServerRecord({ url: listening.url, pid: Deno.pid, startedAtMs: Date.now() });
  for (const line of context.banner(listening.url)) print(line);
}
