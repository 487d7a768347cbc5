/** A real browser without a window, for what only a browser decides. */
import { join } from "../../base/std.ts";
import { until } from "./support.ts";

async function findBrowser(): Promise<string | undefined> {
  const given = Deno.env.get("STRING_TEST_CHROMIUM");
  for (const name of given === undefined ? ["chromium", "chromium-browser", "google-chrome"] : [given]) {
    try {
      const { success } = await new Deno.Command(name, {
        args: ["--version"],
        stdout: "null",
        stderr: "null",
      })
        .output();
      if (success) return name;
    } catch {
      // Not this one.
    }
  }
  return undefined;
}

/** The browser of this machine, where there is one. */
export const BROWSER = await findBrowser();
/** Why a test without it is skipped. */
export const NO_BROWSER = "no chromium is installed here (STRING_TEST_CHROMIUM may name one)";

const DEADLINE_MS = 60_000;

/** Runs a browser on a fresh profile until `finish` is done with it. */
async function withBrowser<T>(
  args: readonly string[],
  finish: (child: Deno.ChildProcess) => Promise<T>,
): Promise<T> {
  const profile = await Deno.makeTempDir();
  const child = new Deno.Command(BROWSER ?? "", {
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--disable-dev-shm-usage",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--user-data-dir=${join(profile, "profile")}`,
      ...args,
    ],
    cwd: profile,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  try {
    return await finish(child);
  } finally {
    await removeFolder(profile);
  }
}

/** Removes a folder into which a helper of a browser may still be writing as it ends. */
async function removeFolder(path: string): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      return await Deno.remove(path, { recursive: true });
    } catch (error) {
      if (attempt === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/**
 * Opens a page, lets its scripts run, and returns its final HTML. Fails when the browser hangs.
 *
 * @param flags More flags of the browser; the last of two of one name counts.
 */
export function openPage(url: string, flags: readonly string[] = []): Promise<string> {
  return withBrowser(["--virtual-time-budget=3000", "--dump-dom", ...flags, url], async (child) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), DEADLINE_MS);
    const { stdout, signal } = await child.output();
    clearTimeout(timer);
    if (signal !== null) throw new Error(`The browser did not end within ${DEADLINE_MS} ms`);
    return new TextDecoder().decode(stdout);
  });
}

/** Opens a page and lets it run in real time until `done`; a page that downloads something never ends by itself. */
export function visitPage(url: string, done: () => boolean): Promise<void> {
  return withBrowser([url], async (child) => {
    const output = child.stdout.cancel();
    try {
      await until(done, DEADLINE_MS, `a browser on ${new URL(url).pathname}`);
    } finally {
      child.kill("SIGKILL");
      await output;
      await child.status;
    }
  });
}

/** A site of pages under an origin of its own, which notes what it was asked for. */
export interface Site extends AsyncDisposable {
  readonly origin: string;
  /** Paths with queries, in order. */
  readonly seen: string[];
}

/** Serves `pages` by path; everything else is an empty answer that any page may read. */
export function startSite(pages: Record<string, string>): Site {
  const seen: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname, search } = new URL(request.url);
    seen.push(pathname + search);
    const page = pages[pathname];
    return page === undefined
      ? new Response(null, { status: 204, headers: { "access-control-allow-origin": "*" } })
      : new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
  });
  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    seen,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
