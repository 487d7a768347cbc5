/** Finding and making the folder that a file lies in. */
import { AppError } from "../../base/errors.ts";
import type { CanonicalPath } from "../../base/paths.ts";
import { diskCodeOf } from "./disk_errors.ts";
import type { HeldFolder, Opener } from "./opener.ts";

/** The permissions of folders that an upload makes. */
const FOLDER_PERMISSIONS = 0o755;

/** How many folders one upload may make: each is held open until it is durable. */
const MAX_MADE = 128;

/** The folder in which a path's parent lies as far as it exists, and what is missing below it. */
export interface Found {
  readonly folder: HeldFolder;
  readonly missing: readonly string[];
}

/** Opens the deepest folder that exists on the way to `parent`; throws for a link or a file on the way. */
export function findParent(opener: Opener, home: string, parent: CanonicalPath): Found {
  try {
    return { folder: opener.folder(home, parent), missing: [] };
  } catch (error) {
    if (parent === "" || diskCodeOf(error) !== "ENOENT") throw error;
  }
  const segments = parent.split("/");
  let folder = opener.folder(home, "" as CanonicalPath);
  for (let index = 0; index < segments.length; index++) {
    try {
      const next = folder.folder(segments[index] ?? "");
      folder.close();
      folder = next;
    } catch (error) {
      if (diskCodeOf(error) === "ENOENT") return { folder, missing: segments.slice(index) };
      folder.close();
      throw error;
    }
  }
  return { folder, missing: [] };
}

/** A parent that exists, with the folders on the way to it that were made now. */
export class Parent {
  /** The folders in which something was made, outermost first, each with the name made. Held until `close`. */
  readonly #made: { folder: HeldFolder; name: string }[] = [];
  #folder: HeldFolder;
  #closed = false;

  private constructor(folder: HeldFolder) {
    this.#folder = folder;
  }

  /** Takes over the folder of `found` and makes what is missing. What was made is undone if that fails. */
  static make(found: Found): Parent {
    if (found.missing.length > MAX_MADE) {
      found.folder.close();
      throw new AppError("invalid_path", `Cannot make more than ${MAX_MADE} folders for one file`);
    }
    const parent = new Parent(found.folder);
    try {
      for (const name of found.missing) parent.#descend(name);
      return parent;
    } catch (error) {
      parent.undo();
      throw error;
    }
  }

  #descend(name: string): void {
    const outer = this.#folder;
    const made = outer.make(name, FOLDER_PERMISSIONS);
    try {
      this.#folder = outer.folder(name);
    } catch (error) {
      if (made) outer.removeFolder(name);
      throw error;
    }
    if (made) this.#made.push({ folder: outer, name });
    else outer.close();
  }

  /** Whether a folder was made on the way. */
  get isFresh(): boolean {
    return this.#made.length > 0;
  }

  get folder(): HeldFolder {
    return this.#folder;
  }

  /** Makes every name that was made on the way durable, and those in the folder itself. */
  async sync(): Promise<void> {
    await Promise.all([this.#folder.sync(), ...this.#made.map(({ folder }) => folder.sync())]);
  }

  /** Removes the folders that were made, as far as nobody has put anything into them, and closes. */
  undo(): void {
    if (this.#closed) return;
    this.#removeMade();
    this.close();
  }

  /** Like `undo`; what stays for another upload's sake is made durable, for that one is answered after this one. */
  async giveUp(): Promise<void> {
    if (this.#closed) return;
    try {
      // A disk that fails here fails under the other one's own sync too.
      await Promise.allSettled(this.#removeMade().map(({ folder }) => folder.sync()));
    } finally {
      this.close();
    }
  }

  /** Returns what could not be removed because somebody uses it already. */
  #removeMade(): readonly { folder: HeldFolder; name: string }[] {
    for (let last = this.#made.length - 1; last >= 0; last--) {
      const { folder, name } = this.#made[last]!;
      try {
        folder.removeFolder(name);
      } catch {
        // Not empty: then those around it are not empty either.
        return this.#made.slice(0, last + 1);
      }
    }
    return [];
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#folder.close();
    for (const { folder } of this.#made) folder.close();
  }
}
