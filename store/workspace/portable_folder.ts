/** Folders and staged files by path, each component looked at before each use. */
import { accessSync, constants, statfsSync } from "node:fs";
import { diskCodeOf, DiskError } from "./disk_errors.ts";
import { type Facts, kindOf } from "./facts.ts";
import { folderRefusalOf, type HeldFolder, type StagedFile } from "./opener.ts";

const TWO_32 = 2 ** 32;

function toTime(date: Date | null): { seconds: number; nanos: number } {
  const ms = Math.floor(date?.getTime() ?? 0);
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * 1_000_000 };
}

/** Turns Deno's facts into ours: times in whole milliseconds. */
export function toFacts(info: Deno.FileInfo): Facts {
  const mtime = toTime(info.mtime);
  const ctime = toTime(info.ctime);
  const inode = info.ino ?? 0;
  const plain = info.isFile ? "file" : info.isDirectory ? "folder" : info.isSymlink ? "link" : "other";
  return {
    kind: info.mode === null ? plain : kindOf(info.mode),
    permissions: (info.mode ?? 0o644) & 0o7777,
    fixed: false, // not to be seen this way: the change itself fails then
    device: info.dev,
    inodeLow: inode % TWO_32,
    inodeHigh: Math.floor(inode / TWO_32),
    size: info.size,
    mtimeSeconds: mtime.seconds,
    mtimeNanos: mtime.nanos,
    ctimeSeconds: ctime.seconds,
    ctimeNanos: ctime.nanos,
  };
}

/** Returns the facts of what is at an absolute path, a link's own. */
export function factsAt(path: string): Facts {
  return toFacts(Deno.lstatSync(path));
}

function checkFolder(path: string): void {
  const refusal = folderRefusalOf(factsAt(path));
  if (refusal !== undefined) throw new DiskError(refusal, "lstat");
}

/** Returns the absolute path of a folder below `home` after looking at each component of the way, `home` included. */
export function walk(home: string, path: string): string {
  checkFolder(home);
  let at = home;
  for (const segment of path === "" ? [] : path.split("/")) {
    at += `/${segment}`;
    checkFolder(at);
  }
  return at;
}

class PortableStaged implements StagedFile {
  readonly content: Deno.FsFile;
  constructor(private readonly path: string) {
    this.content = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
  }

  facts(): Facts {
    return toFacts(this.content.statSync());
  }

  setMode(permissions: number): void {
    Deno.chmodSync(this.path, permissions);
  }

  setMtime(ns: bigint): void {
    const date = new Date(Number(ns / 1_000_000n));
    this.content.utimeSync(date, date);
  }

  setMark(): boolean {
    return false;
  }

  close(): void {
    this.content.close();
  }
}

/** A folder by its absolute path. */
export class PortableFolder implements HeldFolder {
  constructor(private readonly path: string) {}

  #at(name: string): string {
    return `${this.path}/${name}`;
  }

  entry(name: string): Facts | undefined {
    try {
      return factsAt(this.#at(name));
    } catch (error) {
      if (diskCodeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  folder(name: string): PortableFolder {
    checkFolder(this.#at(name));
    return new PortableFolder(this.#at(name));
  }

  make(name: string, permissions: number): boolean {
    checkFolder(this.path);
    try {
      Deno.mkdirSync(this.#at(name), { mode: permissions });
      return true;
    } catch (error) {
      if (diskCodeOf(error) === "EEXIST") return false;
      throw error;
    }
  }

  create(name: string): StagedFile {
    checkFolder(this.path);
    return new PortableStaged(this.#at(name));
  }

  unlink(name: string): void {
    checkFolder(this.path);
    const facts = factsAt(this.#at(name));
    if (facts.kind === "folder") throw new DiskError("EISDIR", "remove");
    Deno.removeSync(this.#at(name));
  }

  removeFolder(name: string): void {
    checkFolder(this.#at(name));
    Deno.removeSync(this.#at(name));
  }

  move(name: string, target: HeldFolder, newName: string, options: { replace: boolean }): void {
    if (!(target instanceof PortableFolder)) throw new TypeError("a folder of another opener");
    checkFolder(this.path);
    checkFolder(target.path);
    if (options.replace) return Deno.renameSync(this.#at(name), target.#at(newName));
    // A second name is refused by the system where the first exists; a crash in between leaves a stale staging file.
    Deno.linkSync(this.#at(name), target.#at(newName));
    Deno.removeSync(this.#at(name));
  }

  names(): string[] {
    checkFolder(this.path);
    return Array.from(Deno.readDirSync(this.path), (entry) => entry.name);
  }

  freeBytes(): number {
    const facts = statfsSync(this.path);
    return facts.bavail * facts.bsize;
  }

  checkWritable(): void {
    accessSync(this.path, constants.W_OK | constants.X_OK);
  }

  async sync(): Promise<void> {
    checkFolder(this.path);
    // Elsewhere than on Windows a folder opens like a file.
    const folder = await Deno.open(this.path, { read: true });
    try {
      await folder.sync();
    } finally {
      folder.close();
    }
  }

  close(): void {}
}
