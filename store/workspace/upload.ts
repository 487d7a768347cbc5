/**
 * One upload: bytes into staging, made durable; then, in one step, into their place.
 *
 * The order that a trace must show: fdatasync of the file, rename, fsync of the folder, answer.
 * Source: architecture.md "Workspaces"; reports 10, 13, 16.
 */
import { createId } from "../../base/ids.ts";
import { AppError } from "../../base/errors.ts";
import { type CanonicalPath, splitPath } from "../../base/paths.ts";
import { checkWriteConditions } from "./conditions.ts";
import { checkReserve, type StoreContext } from "./context.ts";
import { diskCodeOf, DiskError, toRefusal } from "./disk_errors.ts";
import { versionOf } from "./etag.ts";
import type { Facts } from "./facts.ts";
import { makeHome, openStaging, syncParent } from "./home.ts";
import { changeRefusalOf, type HeldFolder, type Opener, type StagedFile } from "./opener.ts";
import { findParent, type Found, Parent } from "./parents.ts";
import { receiveBody, tooLarge } from "./receive.ts";
import type { Bytes, CommitOptions, FileVersion, Upload, UploadOptions, WorkspaceRef } from "./types.ts";

const NEW_FILE_PERMISSIONS = 0o644;
/** A replaced file keeps these: never set-user-id, set-group-id or sticky for bytes that somebody else sent. */
const KEPT_PERMISSIONS = 0o777;
/** How often parents are made again when somebody removes them meanwhile. */
const MAX_PLACEMENTS = 3;

/** Looks at what has the target's name now; throws for all but a regular file or nothing. */
function current(folder: HeldFolder, name: string): Facts | undefined {
  const facts = folder.entry(name);
  const refusal = facts === undefined ? undefined : changeRefusalOf(facts);
  if (refusal !== undefined) throw new DiskError(refusal, "stat");
  return facts;
}

/** Finds the parent; a home that somebody removed comes back, but its own parent must be there. */
function findOrMakeHome(
  opener: Opener,
  home: string,
  parent: CanonicalPath,
): { found: Found; homeIsFresh: boolean } {
  try {
    return { found: findParent(opener, home, parent), homeIsFresh: false };
  } catch (error) {
    if (diskCodeOf(error) !== "ENOENT" || !makeHome(home)) throw error;
    return { found: findParent(opener, home, parent), homeIsFresh: true };
  }
}

/** An upload into a local store. */
export class LocalUpload implements Upload {
  #over = false;
  /** Settles when what runs now is done; never rejects. */
  #busy: Promise<unknown> = Promise.resolve();
  readonly #stop = new AbortController();
  /** Whether the staged file carries the mark itself. */
  #marked = false;
  #moved = false;
  /** Ends the announcement of folders that this upload made. */
  #settle: (() => void) | undefined;

  private constructor(
    private readonly context: StoreContext,
    private readonly workspace: WorkspaceRef,
    private readonly path: CanonicalPath,
    private readonly options: UploadOptions,
    private readonly staging: HeldFolder,
    private readonly name: string,
    private readonly staged: StagedFile,
    /** Whether this upload made the workspace's home. */
    private readonly homeIsFresh: boolean,
  ) {}

  /** Checks all that can be known before the body, and makes the staging file. */
  static begin(
    context: StoreContext,
    workspace: WorkspaceRef,
    path: CanonicalPath,
    options: UploadOptions,
  ): LocalUpload {
    const { opener, maker } = context;
    if ((options.declaredBytes ?? 0) > options.maxBytes) throw tooLarge(options.maxBytes);
    if (path === "") throw new DiskError("EISDIR", "stat");
    const { parent, name } = splitPath(path);
    const { found, homeIsFresh } = findOrMakeHome(opener, workspace.home, parent);
    try {
      if (found.missing.length === 0) current(found.folder, name);
      checkReserve(found.folder, context.options.diskReserveBytes, options.declaredBytes ?? 0);
    } finally {
      found.folder.close();
    }
    const staging = openStaging(opener, workspace.home, { make: true });
    try {
      const stagedName = createId(`${maker.id}.`);
      const staged = staging.create(stagedName);
      return new LocalUpload(context, workspace, path, options, staging, stagedName, staged, homeIsFresh);
    } catch (error) {
      staging.close();
      throw error;
    }
  }

  receive(body: ReadableStream<Bytes> | null): Promise<number> {
    return this.#run(() => this.#receive(body));
  }

  commit(options: CommitOptions = {}): Promise<{ created: boolean; version: FileVersion }> {
    return this.#run(() => this.#commit(options));
  }

  async abort(): Promise<void> {
    this.#stop.abort(new AppError("invalid_request", "Cannot take this body: its upload was given up"));
    // Descriptors must not close under what still uses their numbers.
    await this.#busy;
    this.#end();
  }

  async #run<T>(step: () => Promise<T>): Promise<T> {
    if (this.#over) throw new TypeError("an upload that is over was used");
    const running = step();
    this.#busy = running.then(() => {}, () => {});
    return await running;
  }

  async #receive(body: ReadableStream<Bytes> | null): Promise<number> {
    const { context, options } = this;
    try {
      return await receiveBody(body, this.staged, {
        maxBytes: options.maxBytes,
        declaredBytes: options.declaredBytes,
        idleTimeoutMs: context.options.idleTimeoutMs,
        signal: this.#stop.signal,
        finish: () => this.#finish(),
        checkReserve: () => checkReserve(this.staging, context.options.diskReserveBytes, 0),
      });
    } catch (error) {
      this.#end();
      throw toRefusal(error, "write", this.path);
    }
  }

  /** All that changes the file itself, so that one sync makes it durable: later changes would wait for the journal. */
  #finish(): void {
    const { context, staged } = this;
    this.#marked = this.options.fromOutside && context.marks.putOn(staged);
    staged.setMode(NEW_FILE_PERMISSIONS);
    context.stamps.stamp(staged);
  }

  async #commit(options: CommitOptions): Promise<{ created: boolean; version: FileVersion }> {
    try {
      const placed = await this.context.locks.hold(this.workspace, this.path, () => this.#place(options));
      try {
        // Outside the lock: commits of one folder share one write of the journal.
        await placed.parent.sync();
        if (this.homeIsFresh) await syncParent(this.workspace.home);
      } finally {
        placed.parent.close();
      }
      // First its own, then the others': two that wait for each other would wait for good.
      this.#settleFolders();
      await this.context.freshFolders.settled(this.workspace.key);
      return { created: placed.created, version: placed.version };
    } catch (error) {
      if (diskCodeOf(error) === "ENOENT") {
        throw new AppError(
          "unavailable",
          "Cannot write this file: its folder was moved or removed meanwhile",
          {
            retryAfterSeconds: 1,
          },
        );
      }
      throw toRefusal(error, "write", this.path);
    } finally {
      this.#settleFolders();
      this.#end();
    }
  }

  #announce(parent: Parent): void {
    if (parent.isFresh) this.#settle ??= this.context.freshFolders.announce(this.workspace.key);
  }

  #settleFolders(): void {
    this.#settle?.();
    this.#settle = undefined;
  }

  /** Everything under the path's lock. */
  async #place(
    options: CommitOptions,
  ): Promise<{ parent: Parent; created: boolean; version: FileVersion }> {
    const { context, workspace, path, staged } = this;
    const { name } = splitPath(path);
    let parent = this.#prepare(options);
    this.#announce(parent);
    let unmark: (() => Promise<void>) | undefined;
    try {
      const replaced = current(parent.folder, name);
      if (this.options.fromOutside && !this.#marked) unmark = await context.marks.record(workspace, path);
      if (replaced !== undefined) {
        const permissions = replaced.permissions & KEPT_PERMISSIONS;
        if (permissions !== NEW_FILE_PERMISSIONS) staged.setMode(permissions);
        context.stamps.stampAfter(staged, replaced);
      }
      await options.beforeVisible?.();
      parent = await this.#rename(parent, options.conditions?.ifNoneMatch !== "*");
      unmark = undefined; // it is visible: from here on the mark belongs to it
      const version = versionOf(staged.facts());
      if (!this.options.fromOutside) await context.marks.clear(workspace, path);
      return { parent, created: replaced === undefined, version };
    } catch (error) {
      await parent.giveUp();
      await unmark?.();
      throw error;
    }
  }

  /** Checks the conditions and only then makes parents: a refused upload leaves the disk as it was. */
  #prepare(options: CommitOptions): Parent {
    const { path, workspace, context } = this;
    const { parent, name } = splitPath(path);
    const found = findParent(context.opener, workspace.home, parent);
    try {
      const facts = found.missing.length === 0 ? current(found.folder, name) : undefined;
      checkWriteConditions(options.conditions, facts === undefined ? undefined : versionOf(facts));
      found.folder.checkWritable();
    } catch (error) {
      found.folder.close();
      throw error;
    }
    const made = Parent.make(found);
    try {
      if (found.missing.length > 0) made.folder.checkWritable();
      return made;
    } catch (error) {
      made.undo();
      throw error;
    }
  }

  /**
   * Puts the file in place; makes parents again where somebody has removed them since they were found.
   *
   * @returns The parent that it lies in; the given one is undone where it is another, or where this throws.
   */
  async #rename(parent: Parent, replace: boolean): Promise<Parent> {
    const target = splitPath(this.path);
    for (let attempt = 1;; attempt++) {
      try {
        await this.staging.move(this.name, parent.folder, target.name, { replace });
        this.#moved = true;
        return parent;
      } catch (error) {
        await parent.giveUp();
        const code = diskCodeOf(error);
        if (code === "EEXIST" && !replace) {
          throw new AppError("precondition_failed", "Cannot change this file: it exists already");
        }
        if (code !== "ENOENT" || attempt === MAX_PLACEMENTS) throw error;
        if (this.staging.entry(this.name) === undefined) {
          throw new AppError("unavailable", "Cannot write this file: its staging file was removed", {
            retryAfterSeconds: 1,
          });
        }
        parent = Parent.make(findParent(this.context.opener, this.workspace.home, target.parent));
        this.#announce(parent);
      }
    }
  }

  /** Removes what is left in staging and closes everything, once. */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.staged.close();
    try {
      if (!this.#moved) this.staging.unlink(this.name);
    } catch {
      // Somebody removed it, or the sweep at the next start will.
    }
    this.staging.close();
  }
}
