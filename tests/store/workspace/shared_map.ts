/** A file in memory, shared with whoever reads it: the way to change it without a new time. */
const O_RDWR = 2;
const PROT_READ_WRITE = 1 | 2;
const MAP_SHARED = 1;

function load() {
  try {
    return Deno.dlopen("libc.so.6", {
      open: { parameters: ["buffer", "i32"], result: "i32" },
      close: { parameters: ["i32"], result: "i32" },
      mmap: { parameters: ["pointer", "usize", "i32", "i32", "i32", "i64"], result: "pointer" },
      munmap: { parameters: ["pointer", "usize"], result: "i32" },
    });
  } catch {
    return undefined; // another system or C library: the test says so
  }
}

// Loaded before the first test: 2.6 counts a library that a test loads as a leak of that test.
const libc = load();

/** Whether files can be mapped here. */
export const hasMaps: boolean = libc !== undefined;

/** A mapped file. Dispose of it: that unmaps it. */
export class SharedMap implements Disposable {
  /** The file's content itself. Not to be used after disposal. */
  readonly bytes: Uint8Array;
  readonly #address: Deno.PointerObject;

  /** @param length Bytes to map; the file must be as long. */
  constructor(file: string, length: number) {
    if (libc === undefined) throw new TypeError("no file can be mapped here");
    const { open, mmap, close } = libc.symbols;
    const fd = open(new TextEncoder().encode(`${file}\0`), O_RDWR);
    const address = fd < 0 ? null : mmap(null, BigInt(length), PROT_READ_WRITE, MAP_SHARED, fd, 0n);
    if (fd >= 0) close(fd);
    if (address === null || Deno.UnsafePointer.value(address) === 2n ** 64n - 1n) {
      throw new Error("Cannot map the file");
    }
    this.#address = address;
    this.bytes = new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(address, length));
  }

  [Symbol.dispose](): void {
    libc?.symbols.munmap(this.#address, BigInt(this.bytes.length));
  }
}
