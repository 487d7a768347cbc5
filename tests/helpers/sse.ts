/** Reading a stream of server-sent events. */
import { TextLineStream } from "../../base/std.ts";
import { within } from "./deadline.ts";

/** One event as it came. */
export interface ServerEvent {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** An open stream of events. Dispose of it: that closes it. */
export interface EventStream extends AsyncDisposable {
  /** Waits for the next event; undefined when the server has ended the stream. */
  next(): Promise<ServerEvent | undefined>;
}

/** Opens a stream. Fails when the server refuses it. */
export async function openEvents(url: string, headers: Record<string, string>): Promise<EventStream> {
  const response = await within("the stream opens", fetch(url, { headers }));
  if (response.status !== 200 || response.body === null) {
    throw new Error(`Expected a stream, got ${response.status}: ${await response.text()}`);
  }
  const lines = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  const readEvent = async (): Promise<ServerEvent | undefined> => {
    let event = "message";
    let data = "";
    for (;;) {
      const { done, value } = await lines.read();
      if (done) return undefined;
      if (value.startsWith("event: ")) event = value.slice(7);
      if (value.startsWith("data: ")) data += value.slice(6);
      if (value === "" && data !== "") return { event, data: JSON.parse(data) };
    }
  };
  return {
    next: () => within("the next event", readEvent()),
    [Symbol.asyncDispose]: () => lines.cancel(),
  };
}
