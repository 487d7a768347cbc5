import { OperatorError } from "../../base/operator_error.ts";
import { join } from "../../base/std.ts";
import { requireSameKey } from "../../runtime/key_fingerprint.ts";
import { expect } from "../helpers/expect.ts";
import { runString } from "../helpers/program.ts";
import { startServer } from "../helpers/server.ts";

const key = (byte: number) => new Uint8Array(32).fill(byte);

Deno.test("requireSameKey() binds a database to the first key and refuses another", async () => {
  await using server = await startServer();
  const { settings } = server.context.database;
  const own = await Deno.readTextFile(join(server.dataFolder, "secret.key"));
  const error = await requireSameKey(key(1), settings).then(() => undefined, (thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OperatorError);
  expect(String(error)).not.toContain(own.trim());
  const stored = await settings.get("secret_key_fingerprint");
  expect(stored).toMatch(/^[0-9a-f]{32}$/);
  expect(own).not.toContain(String(stored));
});

Deno.test("a server does not start on a database of another key, and does again with the old one", async () => {
  const dataFolder = await Deno.makeTempDir();
  const file = join(dataFolder, "secret.key");
  try {
    const first = await startServer({ dataFolder });
    await first.admin("POST", "/agents", { agent_id: "eve" });
    const shown = (await first.admin("GET", "/agents/eve/webhook")).body["webhook_url"];
    await first.stop();
    const own = await Deno.readTextFile(file);
    await Deno.writeTextFile(file, "ab".repeat(32));
    const refused = await runString(["serve", "--port", "0", "--data", dataFolder]);
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain("another secret key");
    await Deno.writeTextFile(file, own);
    const again = await startServer({ dataFolder });
    const path = (url: unknown) => new URL(String(url)).pathname;
    expect(path((await again.admin("GET", "/agents/eve/webhook")).body["webhook_url"])).toBe(path(shown));
    await again.stop();
  } finally {
    await Deno.remove(dataFolder, { recursive: true });
  }
});
