/** Fills a small disk (the folder in the first argument) with uploads and prints, as JSON, how each ended. */
import { systemClock } from "../../../../base/clock.ts";
import { AppError } from "../../../../base/errors.ts";
import { silentLog } from "../../../../base/log.ts";
import { parsePlainPath } from "../../../../base/paths.ts";
import { createLocalStore } from "../../../../store/workspace/local_store.ts";
import { bodyOf } from "../bodies.ts";
import { Rows } from "../rows.ts";

const [root = "", containment = ""] = Deno.args;
const store = createLocalStore({
  makersFolder: `${root}/makers`,
  locksFolder: `${root}/locks`,
  marks: new Rows(),
  shared: false,
  containment: containment === "portable" ? "portable" : "auto",
  diskReserveBytes: 0,
  idleTimeoutMs: 5000,
  log: silentLog,
  clock: systemClock,
});
const workspace = { agentId: "eve", key: "eve", home: `${root}/workspaces/eve` };
await store.createWorkspace(workspace);

async function put(name: string, chunks: number): Promise<string> {
  const parsed = parsePlainPath(name);
  if (!parsed.ok) throw new TypeError(parsed.message);
  const body = bodyOf(...Array.from({ length: chunks }, () => new Uint8Array(10_000).fill(65)));
  try {
    const upload = await store.beginUpload(workspace, parsed.path, { maxBytes: 1 << 30, fromOutside: true });
    await upload.receive(body);
    await upload.commit();
    return "accepted";
  } catch (error) {
    return error instanceof AppError ? `${error.code} ${body.locked ? "locked" : "readable"}` : String(error);
  }
}

const outcomes = [
  await put("good", 10),
  await put("good", 500),
  await put("good", 12),
  await put("other", 5),
];
const left = [...Deno.readDirSync(`${workspace.home}/.string/staging`)].length;
const { size } = Deno.statSync(`${workspace.home}/good`);
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify({ outcomes, left, size })));
store.close();
