import type { Bytes } from "./types.ts";

/** Larger is slower. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Streams `length` bytes from where `file` stands, then closes it; also on cancel and when a read fails.
 *
 * For a range that ends before its file does. The runtime's own stream is half as fast again, but runs to the end of
 * the file: HTTP/1.1 cuts it at content-length, HTTP/2 breaks the answer off with PROTOCOL_ERROR.
 */
export function streamBounded(file: Deno.FsFile, length: number): ReadableStream<Bytes> {
  let left = length;
  return new ReadableStream<Bytes>({
    async pull(controller) {
      try {
        const buffer = new Uint8Array(Math.min(left, CHUNK_BYTES));
        const count = await file.read(buffer);
        if (count !== null) {
          left -= count;
          controller.enqueue(buffer.subarray(0, count));
        }
        // A file that has become shorter ends early; its length was announced, so the client notices (report 40).
        if (left > 0 && count !== null) return;
        file.close();
        controller.close();
      } catch (error) {
        file.close();
        throw error;
      }
    },
    cancel: () => file.close(),
  }, { highWaterMark: 0 });
}
