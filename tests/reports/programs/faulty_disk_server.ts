/**
 * A server as `string serve` runs it, over a store whose disk fails: with EIO in the middle of files named `eio…`, and
 * by cutting files named `cut…` to ten bytes between the look at them and the reading.
 *
 * Arguments: data folder, flags of `string serve` as JSON. Prints its port, process id and admin token as JSON; its log
 * goes to standard error.
 */
import { systemClock } from "../../../base/clock.ts";
import { createLog } from "../../../base/log.ts";
import { createHandler } from "../../../routes/app.ts";
import { parseServerConfig } from "../../../runtime/config.ts";
import { type Context, createContext } from "../../../runtime/context.ts";
import { Files } from "../../../runtime/files.ts";
import { runServer } from "../../../runtime/server.ts";
import { openDataFolder } from "../../../store/data_folder/open.ts";
import type { Bytes, OpenedFile, WorkspaceStore } from "../../../store/workspace/types.ts";

const [dataFolder = "", flags = "{}"] = Deno.args;
const config = parseServerConfig(
  { port: "0", data: dataFolder, diskReserve: "1", ...JSON.parse(flags) },
  Deno.env.toObject(),
);
const folder = await openDataFolder(dataFolder, { shared: config.shared });
const log = createLog({
  level: config.logLevel,
  format: "json",
  write: (line) => void Deno.stderr.writeSync(new TextEncoder().encode(line)),
  now: Date.now,
});
const context = await createContext(config, folder, log);

function failing(file: OpenedFile): OpenedFile {
  let sent = 0;
  return {
    version: file.version,
    stream: () =>
      new ReadableStream<Bytes>({
        pull(controller) {
          if (sent < 256 * 1024) {
            sent += 65_536;
            controller.enqueue(new Uint8Array(65_536));
            return;
          }
          file.close();
          controller.error(Object.assign(new Error("Input/output error (os error 5)"), { code: "EIO" }));
        },
        cancel: () => file.close(),
      }),
    close: () => file.close(),
  };
}

const store: WorkspaceStore = Object.create(context.store, {
  abilities: { value: context.store.abilities },
  ...Object.fromEntries(
    (["stat", "beginUpload", "remove"] as const).map((name) => [
      name,
      { value: (context.store[name] as (...args: unknown[]) => unknown).bind(context.store) },
    ]),
  ),
  open: {
    async value(...args: Parameters<WorkspaceStore["open"]>) {
      const file = await context.store.open(...args);
      if (args[1].startsWith("cut")) await Deno.truncate(`${args[0].home}/${args[1]}`, 10);
      return args[1].startsWith("eio") ? failing(file) : file;
    },
  },
});
const { capabilities, agents, audit } = context;
const files = new Files({
  capabilities,
  agents,
  store,
  audit,
  clock: systemClock,
  maxBytes: config.maxBytes,
});
const faulty: Context = Object.create(context, { files: { value: files } });

const code = await runServer({
  handler: createHandler(faulty),
  host: config.host,
  port: config.port,
  graceMs: config.graceMs,
  log,
  async onListen(listening) {
    context.setListening(listening);
    const adminToken = await folder.readAdminToken();
    console.log(JSON.stringify({ port: listening.port, pid: Deno.pid, adminToken }));
  },
});
await context.close();
folder.close();
Deno.exit(code);
