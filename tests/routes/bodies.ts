/** Uploads over a plain socket: with a length, chunked, or waiting for `100 Continue`. */
import { parseRawResponse, type RawResponse, readAll, toLatin1 } from "../helpers/raw.ts";

/** How a body is announced. */
export type Framing = "length" | "chunked" | "expect";
/** All of them. */
export const FRAMINGS: readonly Framing[] = ["length", "chunked", "expect"];

/** What is sent. */
export interface Upload {
  readonly port: number;
  readonly target: string;
  readonly secret?: string;
  readonly framing: Framing;
  readonly bytes: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answer, and how much was sent for it. */
export interface UploadAnswer extends RawResponse {
  readonly sentBytes: number;
  /** Whether the server asked for the body with `100 Continue`. */
  readonly continued: boolean;
}

const PIECE = new Uint8Array(64 * 1024).fill(0x78);

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

async function writeBody(connection: Deno.Conn, { framing, bytes }: Upload): Promise<number> {
  let left = bytes;
  while (left > 0) {
    const piece = PIECE.subarray(0, Math.min(left, PIECE.length));
    if (framing === "chunked") await writeAll(connection, toLatin1(`${piece.length.toString(16)}\r\n`));
    await writeAll(connection, piece);
    if (framing === "chunked") await writeAll(connection, toLatin1("\r\n"));
    left -= piece.length;
  }
  if (framing === "chunked") await writeAll(connection, toLatin1("0\r\n\r\n"));
  return bytes;
}

/** Reads until the head of an answer is complete. */
async function readHead(connection: Deno.Conn): Promise<string> {
  let text = "";
  const buffer = new Uint8Array(4096);
  while (!text.includes("\r\n\r\n")) {
    const count = await connection.read(buffer);
    if (count === null) break;
    for (const byte of buffer.subarray(0, count)) text += String.fromCharCode(byte);
  }
  return text;
}

/** Reads one answer with a length, for a connection that the runtime keeps open behind it. */
export async function readAnswer(connection: Deno.Conn): Promise<RawResponse> {
  let text = await readHead(connection);
  const buffer = new Uint8Array(4096);
  for (;;) {
    const answer = parseRawResponse(text);
    if (answer.body.length >= Number(answer.header("content-length") ?? 0)) return answer;
    const count = await connection.read(buffer);
    if (count === null) return answer;
    for (const byte of buffer.subarray(0, count)) text += String.fromCharCode(byte);
  }
}

/** Sends a whole body before it reads, as simple clients do; with `expect` only after `100 Continue`. */
export async function upload(options: Upload): Promise<UploadAnswer> {
  const { port, target, secret, framing, bytes } = options;
  const headers: Record<string, string> = {
    host: `127.0.0.1:${port}`,
    connection: "close",
    ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
    ...(framing === "chunked" ? { "transfer-encoding": "chunked" } : { "content-length": String(bytes) }),
    ...(framing === "expect" ? { expect: "100-continue" } : {}),
    ...options.headers,
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  try {
    await writeAll(connection, toLatin1(`PUT ${target} HTTP/1.1\r\n${head}\r\n`));
    let begun = framing === "expect" ? await readHead(connection) : "";
    const continued = begun.startsWith("HTTP/1.1 100");
    if (continued) begun = begun.slice(begun.indexOf("\r\n\r\n") + 4);
    let sentBytes = 0;
    if (framing !== "expect" || continued) sentBytes = await writeBody(connection, options);
    return { ...parseRawResponse(begun + await readAll(connection)), sentBytes, continued };
  } finally {
    try {
      connection.close();
    } catch {
      // Closed already by the deadline of the reading.
    }
  }
}
