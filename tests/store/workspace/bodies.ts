import type { Bytes } from "../../../store/workspace/types.ts";

/** Returns a body of `chunks`, each given when it is asked for. */
export function bodyOf(...chunks: Bytes[]): ReadableStream<Bytes> {
  let next = 0;
  return new ReadableStream<Bytes>({
    pull(controller) {
      const chunk = chunks[next++];
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  }, { highWaterMark: 0 });
}

/** Returns the bytes of `text`. */
export function bytes(text: string): Bytes {
  return new TextEncoder().encode(text);
}
