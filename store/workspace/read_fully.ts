import type { Bytes } from "./types.ts";

/** Reads up to `length` bytes from where `file` stands; fewer only where it ends before. */
export async function readFully(file: Pick<Deno.FsFile, "read">, length: number): Promise<Bytes> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const count = await file.read(bytes.subarray(filled));
    if (count === null) break;
    filled += count;
  }
  return filled === length ? bytes : bytes.slice(0, filled);
}
