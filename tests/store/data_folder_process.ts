/**
 * A second process for the tests of the data folder: opens it, says how that went, and holds it until told to go.
 *
 * Arguments: folder, `shared` or `exclusive`. One line of JSON on standard output; ends when standard input does.
 */
import { encodeBase64Url } from "../../base/base64url.ts";
import { openDataFolder } from "../../store/data_folder/open.ts";

const [path = "", mode] = Deno.args;
function say(value: unknown): void {
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(value) + "\n"));
}
try {
  const folder = await openDataFolder(path, { shared: mode === "shared" });
  say({ ok: true, key: encodeBase64Url(folder.secretKey) });
  for await (const _ of Deno.stdin.readable) { /* held until the test lets go */ }
} catch (error) {
  say({ ok: false, message: error instanceof Error ? error.message : String(error) });
}
