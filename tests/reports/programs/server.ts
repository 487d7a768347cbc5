/**
 * A whole server in a process of its own, so that it can be killed.
 *
 * Arguments: data folder, flags of `string serve` as JSON. Prints its port,
 * process id and admin token as JSON, then serves.
 */
import { startServer } from "../../helpers/server.ts";

const server = await startServer({
  dataFolder: Deno.args[0] ?? "",
  flags: JSON.parse(Deno.args[1] ?? "{}"),
  env: Deno.env.toObject(),
});
console.log(JSON.stringify({ port: server.port, pid: Deno.pid, adminToken: server.adminToken }));
