/** A real libSQL server for tests: the binary that `STRING_TEST_SQLD` names, on a free port. */
import { join } from "../../../../base/std.ts";
import { until } from "../helpers.ts";

/** Path of the server's binary, where there is one. */
export const SQLD = Deno.env.get("STRING_TEST_SQLD");

/** A libSQL server that can be stopped and started again on its port and data. */
export interface Sqld {
  readonly url: string;
  start(): Promise<void>;
  /** Kills it outright. */
  stop(): Promise<void>;
  /** Stops its process from running, so that it accepts connections and never answers. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

/** Prepares a server in a temp folder; it does not run yet. */
export async function createSqld(): Promise<Sqld> {
  const folder = await Deno.makeTempDir();
  const address = `127.0.0.1:${freePort()}`;
  let child: Deno.ChildProcess | undefined;
  const answers = async () => {
    try {
      const response = await fetch(`http://${address}/health`);
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false; // not listening yet
    }
  };
  const stop = async () => {
    child?.kill("SIGKILL");
    await child?.status;
    child = undefined;
  };
  return {
    url: `http://${address}`,
    async start() {
      child = new Deno.Command(SQLD ?? "sqld", {
        args: ["--http-listen-addr", address, "--db-path", join(folder, "data.sqld")],
        cwd: folder,
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).spawn();
      await until(answers);
    },
    stop,
    freeze: () => child?.kill("SIGSTOP"),
    thaw: () => child?.kill("SIGCONT"),
    async remove() {
      await stop();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
