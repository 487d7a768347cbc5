/** A store over real folders, once for each way to open files. */
import type { Clock } from "../../../base/clock.ts";
import { systemClock } from "../../../base/clock.ts";
import { AppError } from "../../../base/errors.ts";
import { silentLog } from "../../../base/log.ts";
import { type CanonicalPath, parsePlainPath } from "../../../base/paths.ts";
import { hasContainedOpen, loadLibc } from "../../../store/workspace/libc.ts";
import { createLocalStore, type LocalStoreOptions } from "../../../store/workspace/local_store.ts";
import type {
  Bytes,
  FileVersion,
  UploadOptions,
  WorkspaceRef,
  WorkspaceStore,
  WriteConditions,
} from "../../../store/workspace/types.ts";
import { testIf } from "../../helpers/skip.ts";
import { bodyOf, bytes } from "./bodies.ts";
import { Rows } from "./rows.ts";

export { bodyOf, bytes } from "./bodies.ts";

/** The ways to open files. */
export type Containment = "kernel" | "portable";

// Loaded here and not in the first test: 2.6 counts a library that a test loads as a leak of that test.
const libc = loadLibc();
/** Whether this machine has the kernel's way. */
export const hasKernelWay: boolean = libc !== undefined && hasContainedOpen(libc);

/** A store, a workspace in it, and the folders on the host. */
export interface Fixture {
  readonly containment: Containment;
  readonly root: string;
  readonly home: string;
  readonly workspace: WorkspaceRef;
  readonly rows: Rows;
  readonly store: WorkspaceStore;
  /** Another store over the same folders, as another process would have it. Closed with the fixture. */
  another(options?: Partial<LocalStoreOptions>): WorkspaceStore;
  put(
    path: string,
    content: string | Bytes,
    options?: PutOptions,
  ): Promise<{ created: boolean; version: FileVersion }>;
  read(path: string): Promise<string>;
  /** Absolute path on the host. */
  at(path: string): string;
  /** Names in staging. */
  staged(): string[];
}

/** How a test uploads. */
export interface PutOptions extends Partial<UploadOptions> {
  conditions?: WriteConditions;
  beforeVisible?: () => void | Promise<void>;
}

/** Returns a canonical path. */
export function path(text: string): CanonicalPath {
  const result = parsePlainPath(text);
  if (!result.ok) throw new TypeError(result.message);
  return result.path;
}

/** Returns the code with which `attempt` is refused, or "accepted". Any other error is thrown. */
export async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return "accepted";
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

/** Waits until `condition` holds. */
export async function until(condition: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Returns how many descriptors this process has open. */
export function openDescriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

/** Makes a store and a workspace, runs `test`, and removes everything. */
export async function withStore(
  containment: Containment,
  test: (fixture: Fixture) => Promise<void>,
  overrides: Partial<LocalStoreOptions> & { clock?: Clock } = {},
): Promise<void> {
  const root = await Deno.makeTempDir();
  const rows = new Rows();
  const options: LocalStoreOptions = {
    makersFolder: `${root}/makers`,
    locksFolder: `${root}/locks`,
    marks: rows,
    shared: false,
    containment: containment === "kernel" ? "auto" : "portable",
    diskReserveBytes: 0,
    idleTimeoutMs: 5000,
    log: silentLog,
    clock: systemClock,
    ...overrides,
  };
  const stores: WorkspaceStore[] = [];
  const another = (more: Partial<LocalStoreOptions> = {}) => {
    const made = createLocalStore({ settledMs: 2100, ...options, ...more });
    stores.push(made);
    return made;
  };
  const store = another();
  const home = `${root}/workspaces/eve`;
  const workspace = { agentId: "eve", key: "eve", home };
  const fixture: Fixture = {
    containment,
    root,
    home,
    workspace,
    rows,
    store,
    another,
    async put(to, content, put = {}) {
      const body = typeof content === "string" ? bytes(content) : content;
      const { conditions, beforeVisible, ...rest } = put;
      const upload = await store.beginUpload(workspace, path(to), {
        maxBytes: 1 << 30,
        declaredBytes: body.length,
        fromOutside: false,
        ...rest,
      });
      await upload.receive(bodyOf(body));
      return await upload.commit({
        ...(conditions === undefined ? {} : { conditions }),
        ...(beforeVisible === undefined ? {} : { beforeVisible }),
      });
    },
    async read(from) {
      const file = await store.open(workspace, path(from));
      if (file.bytes !== undefined) return new TextDecoder().decode(file.bytes);
      return await new Response(await file.stream(0, file.version.sizeBytes)).text();
    },
    at: (relative) => `${home}/${relative}`,
    staged: () => [...Deno.readDirSync(`${home}/.string/staging`)].map((entry) => entry.name),
  };
  try {
    await store.createWorkspace(workspace);
    await test(fixture);
  } finally {
    for (const made of stores) made.close();
    await Deno.remove(root, { recursive: true });
  }
}

/** Registers a test for both ways to open files. */
export function testBoth(
  name: string,
  test: (fixture: Fixture) => Promise<void>,
  overrides: Partial<LocalStoreOptions> = {},
): void {
  for (const containment of ["kernel", "portable"] as const) {
    testIf(
      containment === "portable" || hasKernelWay,
      "no openat2 here",
      `${name} (${containment})`,
      () => withStore(containment, test, overrides),
    );
  }
}
