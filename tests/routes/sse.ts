/** A client of an event stream that reads one item at a time. */
import type { TestServer } from "../helpers/server.ts";

/** One item. */
export interface SseItem {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

function parseItem(block: string): SseItem {
  const field = (name: string) =>
    block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  return { event: field("event") ?? "", id: field("id"), data: JSON.parse(field("data") ?? "{}") };
}

/** An open stream. */
export class SseClient {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  constructor(readonly response: Response) {
    if (response.body === null) throw new Error("The stream has no body");
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Opens the stream of an agent, as the operator. */
  static async open(server: TestServer, agentId: string, lastEventId?: string): Promise<SseClient> {
    const response = await server.fetch("/events/stream", {
      headers: {
        authorization: `Bearer ${server.adminToken}`,
        "x-agent-id": agentId,
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
    });
    if (response.status !== 200) throw new Error(`The stream answered ${response.status}`);
    return new SseClient(response);
  }

  /** Returns the next item, or undefined at the end. Fails when nothing comes for ten seconds. */
  async next(): Promise<SseItem | undefined> {
    while (!this.#text.includes("\n\n")) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("The stream said nothing for ten seconds")), 10_000);
      });
      try {
        const { value, done } = await Promise.race([this.#reader.read(), late]);
        if (done) return undefined;
        this.#text += value;
      } finally {
        clearTimeout(timer);
      }
    }
    const end = this.#text.indexOf("\n\n");
    const item = parseItem(this.#text.slice(0, end));
    this.#text = this.#text.slice(end + 2);
    return item;
  }

  /** Hangs up. */
  close(): Promise<void> {
    return this.#reader.cancel();
  }
}
