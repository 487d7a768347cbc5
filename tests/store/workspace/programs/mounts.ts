/**
 * Works on a workspace with mounts in it (below the folder in the first argument) and prints, as JSON, how each
 * operation ended and which of them came as far as becoming visible.
 */
import { systemClock } from "../../../../base/clock.ts";
import { AppError } from "../../../../base/errors.ts";
import { silentLog } from "../../../../base/log.ts";
import { type CanonicalPath, parsePlainPath } from "../../../../base/paths.ts";
import { createLocalStore } from "../../../../store/workspace/local_store.ts";
import { bodyOf, bytes } from "../bodies.ts";
import { Rows } from "../rows.ts";

const [root = ""] = Deno.args;
const store = createLocalStore({
  makersFolder: `${root}/makers`,
  locksFolder: `${root}/locks`,
  marks: new Rows(),
  shared: false,
  containment: "auto",
  diskReserveBytes: 0,
  idleTimeoutMs: 5000,
  log: silentLog,
  clock: systemClock,
});
const workspaceOf = (agentId: string) => ({ agentId, key: agentId, home: `${root}/workspaces/${agentId}` });
const [eve, bob] = [workspaceOf("eve"), workspaceOf("bob")];

function path(text: string): CanonicalPath {
  const parsed = parsePlainPath(text);
  if (!parsed.ok) throw new TypeError(parsed.message);
  return parsed.path;
}

async function outcome(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return "accepted";
  } catch (error) {
    return error instanceof AppError ? error.code : String(error);
  }
}

const visible: string[] = [];

async function put(workspace: typeof eve, name: string): Promise<void> {
  const upload = await store.beginUpload(workspace, path(name), { maxBytes: 100, fromOutside: false });
  await upload.receive(bodyOf(bytes("new")));
  await upload.commit({ beforeVisible: () => void visible.push(`put ${workspace.agentId}/${name}`) });
}

function remove(workspace: typeof eve, name: string): Promise<unknown> {
  return store.remove(workspace, path(name), {
    beforeVisible: () => void visible.push(`remove ${workspace.agentId}/${name}`),
  });
}

const outcomes: Record<string, string> = {};
for (const name of ["vol/file", "vol/deep/er", "bound"]) {
  outcomes[`open ${name}`] = await outcome(async () => (await store.open(eve, path(name))).close());
  outcomes[`stat ${name}`] = await outcome(() => store.stat(eve, path(name)));
  outcomes[`put ${name}`] = await outcome(() => put(eve, name));
  outcomes[`remove ${name}`] = await outcome(() => remove(eve, name));
}
outcomes["put beside"] = await outcome(() => put(eve, "beside"));

outcomes["home"] = await outcome(async () => {
  await store.createWorkspace(bob);
  await put(bob, "deep/file");
  (await store.open(bob, path("deep/file"))).close();
  store.stat(bob, path("deep/file"));
  await remove(bob, "deep/file");
});

const kept = [`${eve.home}/vol/file`, `${eve.home}/bound`].map((file) => Deno.readTextFileSync(file));
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify({ outcomes, visible, kept })));
store.close();
