/**
 * Who is at the other end of a loopback connection: the user that owns the peer's socket, from the kernel.
 *
 * Only a row that is established and still has an inode counts: a socket whose owner closed it is listed with
 * user 0, and must not pass for root. Never cached. Source: design.md "Who is the operator".
 */
import { toPlainAddress } from "../base/addresses.ts";

/** One end of a TCP connection. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** One socket of the kernel's table. */
interface SocketRow {
  readonly local: Endpoint;
  readonly remote: Endpoint;
  readonly state: string;
  readonly uid: number;
  readonly inode: string;
}

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
const ESTABLISHED = "01";
const bigEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 0;

/** Parses the kernel's hexadecimal `ADDRESS:PORT`, whose 32-bit words are in the byte order of the machine. */
function parseEndpoint(text: string): Endpoint {
  const [hex = "", port = ""] = text.split(":");
  const bytes: number[] = [];
  for (let word = 0; word < hex.length; word += 8) {
    const four = [0, 2, 4, 6].map((at) => Number.parseInt(hex.slice(word + at, word + at + 2), 16));
    bytes.push(...(bigEndian ? four : four.reverse()));
  }
  return { address: toAddress(bytes), port: Number.parseInt(port, 16) };
}

function toAddress(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  const words: string[] = [];
  for (let at = 0; at < bytes.length; at += 2) words.push(((bytes[at]! << 8) | bytes[at + 1]!).toString(16));
  const mapped = words.slice(0, 5).every((word) => word === "0") && words[5] === "ffff";
  return mapped ? bytes.slice(12).join(".") : words.join(":");
}

/** Parses a socket table. Exported for its test. */
export function parseSocketTable(text: string): SocketRow[] {
  return text.split("\n").slice(1).flatMap((line) => {
    const [, local, remote, state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (local === undefined || remote === undefined || state === undefined || inode === undefined) return [];
    return [{ local: parseEndpoint(local), remote: parseEndpoint(remote), state, uid: Number(uid), inode }];
  });
}

function sameAddress(a: string, b: string): boolean {
  return expand(a) === expand(b);
}

function expand(address: string): string {
  const plain = toPlainAddress(address);
  return plain === "::1" ? "0:0:0:0:0:0:0:1" : plain;
}

/** Returns whether this machine can tell who a peer is. */
export async function canReadPeerUser(): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.uid() === null) return false;
  return (await readTables()) !== undefined;
}

async function readTables(): Promise<SocketRow[] | undefined> {
  const rows: SocketRow[] = [];
  let read = 0;
  for (const table of TABLES) {
    try {
      rows.push(...parseSocketTable(await Deno.readTextFile(table)));
      read++;
    } catch (error) {
      // A kernel without IPv6 has no tcp6. Without either table nobody can be told apart.
      if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied)) {
        throw error;
      }
    }
  }
  return read === 0 ? undefined : rows;
}

/**
 * Returns whether the socket of `peer`, connected to `serverPort` of this machine, belongs to the user `uid`.
 *
 * False when no row matches, and false when one of several matching rows belongs to somebody else.
 */
export async function isPeerOfUser(peer: Endpoint, serverPort: number, uid: number): Promise<boolean> {
  const rows = await readTables();
  const matching = (rows ?? []).filter((row) =>
    row.local.port === peer.port && row.remote.port === serverPort &&
    sameAddress(row.local.address, peer.address)
  );
  return matching.length > 0 &&
    matching.every((row) => row.state === ESTABLISHED && row.inode !== "0" && row.uid === uid);
}
