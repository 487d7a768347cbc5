// The part of @std/streams that String uses; the package on npm carries no types.

/** Passes bytes on until `size` is passed; then ends the stream, or errors it with `RangeError` if `error`. */
export class LimitedBytesTransformStream extends TransformStream<
  Uint8Array<ArrayBuffer>,
  Uint8Array<ArrayBuffer>
> {
  constructor(size: number, options?: { error?: boolean });
}
/** Splits a stream of text into its lines. */
export class TextLineStream extends TransformStream<string, string> {
  constructor(options?: { allowCR?: boolean });
}
/** Reads a stream to its end into one array of bytes. */
export function toBytes(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>>;
/** Reads a stream to its end into one string (UTF-8). */
export function toText(stream: ReadableStream): Promise<string>;
