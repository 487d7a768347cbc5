/** Files of all workspaces on a disk of this machine. */
import type { CanonicalPath } from "../../base/paths.ts";
import type { LocalStoreOptions, StoreContext } from "./context.ts";
import { toRefusal } from "./disk_errors.ts";
import { Stamps, versionOf } from "./etag.ts";
import { FreshFolders } from "./fresh_folders.ts";
import { makeHome, makeHomesFolder, openStaging, removeEmptyHome, syncParent } from "./home.ts";
import { KernelOpener } from "./kernel_opener.ts";
import { hasContainedOpen, loadLibc } from "./libc.ts";
import { canLockFiles } from "./locks.ts";
import { Maker } from "./makers.ts";
import { Marks } from "./marks.ts";
import type { Opener } from "./opener.ts";
import { PathLocks } from "./path_locks.ts";
import { PortableOpener } from "./portable_opener.ts";
import { Reader } from "./reader.ts";
import { removeFile } from "./remove.ts";
import { sweepStaging } from "./sweep.ts";
import type {
  CommitOptions,
  FileVersion,
  MaybePromise,
  OpenedFile,
  StoreAbilities,
  Upload,
  UploadOptions,
  WorkspaceRef,
  WorkspaceStore,
} from "./types.ts";
import { LocalUpload } from "./upload.ts";

export type { LocalStoreOptions } from "./context.ts";

function createOpener(options: LocalStoreOptions): Opener {
  const libc = options.containment === "portable" ? undefined : loadLibc();
  return libc !== undefined && hasContainedOpen(libc) ? new KernelOpener(libc) : new PortableOpener();
}

class LocalStore implements WorkspaceStore {
  readonly abilities: StoreAbilities;
  readonly #reader: Reader;

  constructor(private readonly context: StoreContext) {
    this.abilities = { containment: context.opener.kind, ranges: true, conditionalRequests: true };
    this.#reader = new Reader(context.opener, context.options.settledMs);
  }

  async createWorkspace(workspace: WorkspaceRef): Promise<boolean> {
    const { home } = workspace;
    try {
      makeHomesFolder(home);
      const made = makeHome(home);
      openStaging(this.context.opener, home, { make: true }).close();
      if (made) await syncParent(home);
      return made;
    } catch (error) {
      throw toRefusal(error, "make", workspace.agentId);
    }
  }

  // deno-lint-ignore require-await -- a refusal must arrive as a rejection
  async removeEmptyWorkspace(workspace: WorkspaceRef): Promise<void> {
    try {
      removeEmptyHome(this.context.opener, workspace.home);
    } catch (error) {
      throw toRefusal(error, "remove", workspace.agentId);
    }
  }

  stat(workspace: WorkspaceRef, path: CanonicalPath): FileVersion {
    try {
      return versionOf(this.context.opener.stat(workspace.home, path));
    } catch (error) {
      throw toRefusal(error, "read", path);
    }
  }

  open(workspace: WorkspaceRef, path: CanonicalPath): MaybePromise<OpenedFile> {
    try {
      const opened = this.#reader.open(workspace.home, path);
      if (!(opened instanceof Promise)) return opened;
      return opened.catch((error) => {
        throw toRefusal(error, "read", path);
      });
    } catch (error) {
      throw toRefusal(error, "read", path);
    }
  }

  // deno-lint-ignore require-await -- a refusal must arrive as a rejection
  async beginUpload(workspace: WorkspaceRef, path: CanonicalPath, options: UploadOptions): Promise<Upload> {
    try {
      return LocalUpload.begin(this.context, workspace, path, options);
    } catch (error) {
      throw toRefusal(error, "write", path);
    }
  }

  async remove(
    workspace: WorkspaceRef,
    path: CanonicalPath,
    options: CommitOptions = {},
  ): Promise<{ existed: boolean }> {
    const { context } = this;
    try {
      return await context.locks.hold(workspace, path, () => removeFile(context, workspace, path, options));
    } catch (error) {
      throw toRefusal(error, "remove", path);
    }
  }

  async isFromOutside(workspace: WorkspaceRef, path: CanonicalPath): Promise<boolean> {
    try {
      const file = this.context.opener.open(workspace.home, path);
      try {
        if (file.hasMark()) return true;
      } finally {
        file.close();
      }
    } catch (error) {
      throw toRefusal(error, "read", path);
    }
    return await this.context.marks.has(workspace, path);
  }

  // deno-lint-ignore require-await -- a failure must arrive as a rejection
  async sweep(workspaces: readonly WorkspaceRef[]): Promise<number> {
    return sweepStaging(this.context, workspaces);
  }

  close(): void {
    this.context.opener.close();
    this.context.maker.release();
  }
}

/**
 * Makes a store over folders of this machine and registers this process as a maker of staging files.
 *
 * Throws where `shared` is asked for and this system has no lock that can be tried without waiting.
 */
export function createLocalStore(options: LocalStoreOptions): WorkspaceStore {
  if (options.shared && !canLockFiles()) {
    throw new Error(
      "Cannot share workspaces between processes: this system has no file locks that can be tried",
    );
  }
  Deno.mkdirSync(options.makersFolder, { recursive: true, mode: 0o700 });
  if (options.shared) Deno.mkdirSync(options.locksFolder, { recursive: true, mode: 0o700 });
  const opener = createOpener(options);
  return new LocalStore({
    options,
    opener,
    maker: new Maker(options.makersFolder),
    marks: new Marks(options.marks, { rowsOnly: options.marksIn === "rows", log: options.log }),
    locks: new PathLocks(options.shared ? options.locksFolder : undefined),
    freshFolders: new FreshFolders(),
    stamps: new Stamps(opener.tickNs, () => options.clock.now()),
  });
}
