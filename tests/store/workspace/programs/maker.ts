/** Begins uploads in another process and says when they are staged; then waits to be killed. */
import { systemClock } from "../../../../base/clock.ts";
import { silentLog } from "../../../../base/log.ts";
import { parsePlainPath } from "../../../../base/paths.ts";
import { createLocalStore } from "../../../../store/workspace/local_store.ts";
import { Rows } from "../rows.ts";

const [root = "", containment = "auto", command = ""] = Deno.args;
const store = createLocalStore({
  makersFolder: `${root}/makers`,
  locksFolder: `${root}/locks`,
  marks: new Rows(),
  // A shared workspace admits one upload at a time: there no other one comes between.
  shared: command !== "fail",
  containment: containment === "portable" ? "portable" : "auto",
  diskReserveBytes: 0,
  idleTimeoutMs: 5000,
  log: silentLog,
  clock: systemClock,
});
const workspace = { agentId: "eve", key: "eve", home: `${root}/workspaces/eve` };

async function stage(name: string) {
  const parsed = parsePlainPath(name);
  if (!parsed.ok) throw new TypeError(parsed.message);
  const upload = await store.beginUpload(workspace, parsed.path, { maxBytes: 1 << 20, fromOutside: true });
  await upload.receive(new Blob([new Uint8Array(5000)]).stream());
  return upload;
}

async function say(word: string): Promise<void> {
  await Deno.stdout.write(new TextEncoder().encode(`${word}\n`));
}

if (command === "commit") {
  await store.createWorkspace(workspace);
  await (await stage("a/b/file")).commit();
  await say("committed");
} else if (command === "fail") {
  // Makes the folder `new`, and gives up when another upload has put its file there.
  await store.createWorkspace(workspace);
  const guest = await stage("new/guest");
  let answered: Promise<unknown> = Promise.resolve();
  const beforeVisible = async () => {
    answered = guest.commit();
    while (![...Deno.readDirSync(`${workspace.home}/new`)].length) {
      await new Promise((go) => setTimeout(go, 1));
    }
    throw new Error("given up");
  };
  await (await stage("new/maker")).commit({ beforeVisible }).catch(() => {});
  await answered;
  await say("answered");
} else if (command === "create") {
  // Races with others for new files: prints how many it made.
  let made = 0;
  for (let index = 0; index < 30; index++) {
    const upload = await stage(`race/${index}`);
    try {
      await upload.commit({ conditions: { ifNoneMatch: "*" } });
      made++;
    } catch {
      // Another one was faster; that is counted by its absence.
    }
  }
  await say(String(made));
} else {
  await stage("one");
  await stage("two");
  await say("staged");
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}
store.close();
