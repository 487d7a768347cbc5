/** What the file store costs per call, by way of opening; `statSync` is the measure that follows links and checks nothing. */
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { parsePlainPath } from "../base/paths.ts";
import { createLocalStore } from "../store/workspace/local_store.ts";

const none = Promise.resolve();
const marks = { set: () => none, clear: () => none, has: () => Promise.resolve(false) };
const root = await Deno.makeTempDir();
const parsed = parsePlainPath("a/b/c.bin");
if (!parsed.ok) throw new TypeError(parsed.message);
const { path } = parsed;
const content = new Uint8Array(4096);

Deno.bench("Deno.statSync of the same file", { group: "stat", baseline: true }, () => {
  Deno.statSync(`${root}/workspaces/auto/a/b/c.bin`);
});

for (const containment of ["auto", "portable"] as const) {
  const store = createLocalStore({
    makersFolder: `${root}/makers`,
    locksFolder: `${root}/locks`,
    marks,
    shared: false,
    containment,
    diskReserveBytes: 0,
    idleTimeoutMs: 30_000,
    log: silentLog,
    clock: systemClock,
  });
  const workspace = { agentId: "bench", key: "bench", home: `${root}/workspaces/${containment}` };
  const way = store.abilities.containment;
  const put = async (body: Uint8Array<ArrayBuffer>, to = path) => {
    const options = { maxBytes: 1 << 30, declaredBytes: body.length, fromOutside: true };
    const upload = await store.beginUpload(workspace, to, options);
    await upload.receive(new Response(body).body);
    await upload.commit();
  };
  await store.createWorkspace(workspace);
  await put(content);
  // Until the content is kept: a file that has just changed is not.
  while ((await store.open(workspace, path)) !== (await store.open(workspace, path))) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }

  Deno.bench(`stat (${way})`, { group: "stat" }, () => {
    store.stat(workspace, path);
  });
  Deno.bench(`open, content in memory (${way})`, { group: "stat" }, () => {
    store.open(workspace, path);
  });
  Deno.bench(`upload of 4 KiB, durable (${way})`, { group: "upload" }, () => put(content));
  const targets = Array.from({ length: 16 }, (_, index) => parsePlainPath(`many/${index}`));
  Deno.bench(`16 uploads of 4 KiB at once, durable (${way})`, { group: "upload" }, async () => {
    await Promise.all(targets.map((target) => target.ok ? put(content, target.path) : undefined));
  });
}

globalThis.addEventListener("unload", () => Deno.removeSync(root, { recursive: true }));
