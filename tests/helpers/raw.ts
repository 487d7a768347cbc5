/** Requests as bytes over a plain socket, because ordinary clients tidy the target first. */

/** An answer, as it came. */
export interface RawResponse {
  readonly status: number;
  readonly head: string;
  readonly body: string;
  /** Returns a header's value, or undefined. */
  header(name: string): string | undefined;
}

/** One byte, one character. `TextDecoder` will not do: to it, "latin1" is windows-1252. */
function fromLatin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return text;
}

/** Turns text into bytes, one character one byte. */
export function toLatin1(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Splits what came over the socket. */
export function parseRawResponse(text: string): RawResponse {
  const end = text.indexOf("\r\n\r\n");
  const head = end < 0 ? text : text.slice(0, end);
  const lines = head.split("\r\n");
  return {
    status: Number(lines[0]?.split(" ")[1] ?? 0),
    head,
    body: end < 0 ? "" : text.slice(end + 4),
    header: (name) =>
      lines.slice(1).find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))?.split(":")
        .slice(1)
        .join(":").trim(),
  };
}

/** Reads a connection to its end, or until `deadlineMs` has passed. */
export async function readAll(connection: Deno.Conn, deadlineMs = 10_000): Promise<string> {
  let text = "";
  const timer = setTimeout(() => connection.close(), deadlineMs);
  const buffer = new Uint8Array(65_536);
  try {
    while (true) {
      const count = await connection.read(buffer);
      if (count === null) break;
      text += fromLatin1(buffer.subarray(0, count));
    }
  } catch {
    // Closed by the deadline or reset by the server: what came until then is the answer.
  } finally {
    clearTimeout(timer);
  }
  return text;
}

/**
 * Sends bytes and returns the first response, with the connection closed behind it.
 *
 * `raw` must ask for `Connection: close` itself where it wants the body to end there.
 */
export async function sendRaw(
  port: number,
  raw: string | Uint8Array,
  hostname = "127.0.0.1",
): Promise<RawResponse> {
  const connection = await Deno.connect({ hostname, port });
  try {
    const bytes = typeof raw === "string" ? toLatin1(raw) : raw;
    for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
    return parseRawResponse(await readAll(connection));
  } finally {
    try {
      connection.close();
    } catch {
      // Closed already by the deadline.
    }
  }
}

/** Sends a request line with a target exactly as given, and the usual headers. */
export function sendTarget(
  port: number,
  method: string,
  target: string,
  headers: Record<string, string> = {},
): Promise<RawResponse> {
  const lines = Object.entries({ host: `127.0.0.1:${port}`, connection: "close", ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return sendRaw(port, `${method} ${target} HTTP/1.1\r\n${lines}\r\n`);
}
