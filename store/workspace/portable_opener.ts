/**
 * Opening by looking at each component first, with Deno's own calls: where the kernel's way is missing.
 *
 * Between the look and the use there is a window in which a program of the agent's can put a link; `/describe` says
 * which way is in force. A file that is opened for reading is compared with what was looked at. All calls are
 * synchronous, which keeps the window small.
 */
import type { CanonicalPath } from "../../base/paths.ts";
import { DiskError } from "./disk_errors.ts";
import { type Facts, isSameThing } from "./facts.ts";
import { type HeldFile, type HeldFolder, type Opener, refusalOf } from "./opener.ts";
import { factsAt, PortableFolder, toFacts, walk } from "./portable_folder.ts";
import { readFully } from "./read_fully.ts";
import type { Bytes } from "./types.ts";

class PortableFile implements HeldFile {
  readonly facts: Facts;
  #handedOver = false;

  /** Takes the file over, or closes it and throws where it is not the one that was looked at. */
  constructor(private readonly file: Deno.FsFile, looked: Facts) {
    this.facts = toFacts(file.statSync());
    if (this.facts.kind === "file" && isSameThing(this.facts, looked)) return;
    file.close();
    throw new DiskError("EAGAIN", "open");
  }

  again(): Facts {
    return toFacts(this.file.statSync());
  }

  read(length: number): Promise<Bytes> {
    this.file.seekSync(0, Deno.SeekMode.Start);
    return readFully(this.file, length);
  }

  content(): Deno.FsFile {
    this.#handedOver = true;
    return this.file;
  }

  hasMark(): boolean {
    return false;
  }

  close(): void {
    if (!this.#handedOver) this.file.close();
  }
}

/** The portable way. */
export class PortableOpener implements Opener {
  readonly kind = "portable";
  readonly tickNs = 1_000_000n;

  #look(home: string, path: CanonicalPath): { at: string; facts: Facts } {
    if (path === "") throw new DiskError("EISDIR", "lstat");
    const slash = path.lastIndexOf("/");
    const at = `${walk(home, slash < 0 ? "" : path.slice(0, slash))}/${path.slice(slash + 1)}`;
    const facts = factsAt(at);
    const refusal = refusalOf(facts);
    if (refusal !== undefined) throw new DiskError(refusal, "lstat");
    return { at, facts };
  }

  stat(home: string, path: CanonicalPath): Facts {
    return this.#look(home, path).facts;
  }

  open(home: string, path: CanonicalPath): HeldFile {
    const { at, facts } = this.#look(home, path);
    return new PortableFile(Deno.openSync(at, { read: true }), facts);
  }

  folder(home: string, path: CanonicalPath): HeldFolder {
    return new PortableFolder(walk(home, path));
  }

  close(): void {}
}
