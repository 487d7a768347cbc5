/** Opens files for reading: small ones whole and from memory where it can be, large ones as the runtime's own stream. */
import type { CanonicalPath } from "../../base/paths.ts";
import { streamBounded } from "./bounded_stream.ts";
import { ContentCache, MAX_SMALL_BYTES } from "./content_cache.ts";
import { DiskError } from "./disk_errors.ts";
import { versionOf } from "./etag.ts";
import { type Facts, isSameVersion } from "./facts.ts";
import type { HeldFile, Opener } from "./opener.ts";
import type { Bytes, FileVersion, MaybePromise, OpenedFile } from "./types.ts";

/** How often a file that changes while it is read is read again. */
const MAX_TRIES = 4;

class SmallFile implements OpenedFile {
  constructor(readonly version: FileVersion, readonly bytes: Bytes) {}

  stream(start: number, length: number): ReadableStream<Bytes> {
    // A copy: a consumer may take the memory of what a stream gives it.
    const part = this.bytes.slice(start, start + length);
    return new ReadableStream({
      start(controller) {
        if (part.length > 0) controller.enqueue(part);
        controller.close();
      },
    });
  }

  close(): void {}
}

class LargeFile implements OpenedFile {
  #over = false;

  constructor(readonly version: FileVersion, private readonly file: Deno.FsFile) {}

  stream(start: number, length: number): ReadableStream<Bytes> {
    if (length <= 0) {
      this.close();
      return new ReadableStream({ start: (controller) => controller.close() });
    }
    this.#over = true;
    try {
      this.file.seekSync(start, Deno.SeekMode.Start);
    } catch (error) {
      this.file.close();
      throw error;
    }
    // Untouched where it can be: any wrapper halves throughput.
    const toTheEnd = start + length >= this.version.sizeBytes;
    return toTheEnd ? this.file.readable : streamBounded(this.file, length);
  }

  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.file.close();
  }
}

function openLarge(file: HeldFile): OpenedFile {
  try {
    return new LargeFile(versionOf(file.facts), file.content());
  } finally {
    file.close();
  }
}

/** Opens files of all workspaces through one opener and one memory. */
export class Reader {
  readonly #cache: ContentCache;

  constructor(private readonly opener: Opener, settledMs?: number) {
    this.#cache = new ContentCache(undefined, settledMs);
  }

  /** Opens a regular file; not a promise wherever its content is in memory, ours or the kernel's. */
  open(home: string, path: CanonicalPath): MaybePromise<OpenedFile> {
    const file = this.opener.open(home, path);
    if (file.facts.size > MAX_SMALL_BYTES) return openLarge(file);
    const known = this.#cache.find(file.facts);
    if (known !== undefined) {
      file.close();
      return known;
    }
    let result: MaybePromise<OpenedFile>;
    try {
      result = this.#readSmall(file, file.facts, 1);
    } catch (error) {
      file.close();
      throw error;
    }
    if (result instanceof Promise) return result.finally(() => file.close());
    file.close();
    return result;
  }

  #readSmall(file: HeldFile, facts: Facts, attempt: number): MaybePromise<OpenedFile> {
    if (facts.size > MAX_SMALL_BYTES) return new LargeFile(versionOf(facts), file.content());
    const bytes = file.read(facts.size);
    return bytes instanceof Promise
      ? bytes.then((read) => this.#finish(file, facts, read, attempt))
      : this.#finish(file, facts, bytes, attempt);
  }

  /** Believes the bytes only if the file is what it was before they were read, so that tag and content belong together. */
  #finish(file: HeldFile, facts: Facts, bytes: Bytes, attempt: number): MaybePromise<OpenedFile> {
    const after = file.again();
    if (isSameVersion(facts, after) && bytes.length === facts.size) {
      const opened = new SmallFile(versionOf(facts), bytes);
      this.#cache.keep(facts, opened);
      return opened;
    }
    if (attempt < MAX_TRIES) return this.#readSmall(file, after, attempt + 1);
    // Written to all the time, like a log: what was there when the reading began is as good as it gets.
    if (bytes.length === facts.size) return new SmallFile(versionOf(facts), bytes);
    throw new DiskError("EAGAIN", "read");
  }
}
