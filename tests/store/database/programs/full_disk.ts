/**
 * Fills the small file system it is given, writes records into it, and prints what came of it as JSON.
 *
 * Run where a tmpfs can be mounted: `unshare -Urm`.
 */
import { AppError } from "../../../../base/errors.ts";
import { join } from "../../../../base/std.ts";
import { newAgent, newCapability, openRecords } from "../helpers.ts";

const folder = Deno.args[0] ?? "";
// Twice what the log grows to before it is carried over and used again (4 MiB): healing must not run into the end.
const mounted = await new Deno.Command("mount", { args: ["-t", "tmpfs", "-o", "size=8m", "none", folder] })
  .output();
if (!mounted.success) throw new Error("Cannot mount a tmpfs");

const db = await openRecords(join(folder, "string.db"));
await db.agents.pair({ agent: newAgent() });
const outcome = (promise: Promise<unknown>) =>
  promise.then(() => "stored", (error) => error instanceof AppError ? error.code : String(error));

/** Leaves `freeBytes` on the file system. */
function fill(freeBytes: number): void {
  const filler = Deno.openSync(join(folder, "filler"), { write: true, create: true, truncate: true });
  const block = new Uint8Array(4096);
  let size = 0;
  try {
    while (true) size += filler.writeSync(block);
  } catch {
    filler.truncateSync(Math.max(0, size - freeBytes)); // full, as it should be
  }
  filler.close();
}

fill(0);
const alone: string[] = [];
const capability = newCapability();
for (let n = 0; n < 20; n++) alone.push(await outcome(db.capabilities.insert(capability)));
const stored = await db.capabilities.findByHash(capability.secret_hash);

fill(120_000);
const together = await Promise.all([
  outcome(db.settings.set("small", "1")),
  outcome(db.settings.set("large", "x".repeat(200_000))),
  outcome(db.settings.set("small", "2")),
]);
const small = await db.settings.get("small");

Deno.removeSync(join(folder, "filler"));
const after = new Set<string>();
for (let n = 0; n < 100; n++) {
  after.add(
    await outcome(db.capabilities.insert(newCapability()).then((row) => row ?? Promise.reject("lost"))),
  );
}
const check = await db.engine.read({ sql: "PRAGMA integrity_check", parameters: [] });
await db.close();
console.log(JSON.stringify({
  alone: [...new Set(alone)],
  stored: stored !== undefined,
  together,
  small,
  after: [...after],
  check: check[0]?.integrity_check,
}));
