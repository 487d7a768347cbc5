/**
 * The kernel's own list of sockets (`/proc/net`), and which of them are this process's.
 *
 * Linux only. Source: architecture.md "Who is the operator".
 */
import { toCanonicalAddress } from "../base/addresses.ts";

/** One end of a TCP connection. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** One TCP socket of the machine. */
export interface SocketRow {
  /** In the spelling of `toCanonicalAddress`. */
  readonly local: Endpoint;
  readonly remote: Endpoint;
  /** Whether both directions are open. */
  readonly established: boolean;
  readonly uid: number;
  /** "0" for a socket that no process holds any more: the kernel then shows user 0, whoever it belonged to. */
  readonly inode: string;
}

const TCP_TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** Other sockets that this process may hold. */
const OTHER_TABLES = ["/proc/net/unix", "/proc/net/udp", "/proc/net/udp6"];
const ESTABLISHED = "01";
const bigEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 0;

/** Turns the kernel's hexadecimal address, whose 32-bit words are in the byte order of the machine, into ours. */
function toAddress(hex: string): string {
  const bytes = hex.match(/../g) ?? [];
  if (!bigEndian) {
    for (let at = 0; at < bytes.length; at += 4) bytes.splice(at, 4, ...bytes.slice(at, at + 4).reverse());
  }
  const text = bytes.length === 4
    ? bytes.map((byte) => Number.parseInt(byte, 16)).join(".")
    : bytes.join("").replace(/(....)(?!$)/g, "$1:");
  return toCanonicalAddress(text) ?? text;
}

//               sl   local       remote      st    queues timer retr  uid   timeout inode
const TCP_ROW = /^ *\d+: (\w+):(\w{4}) (\w+):(\w{4}) (\w\w) \S+ \S+ \S+ +(\d+) +\d+ +(\d+)/gm;

/**
 * Parses the rows of a TCP table that have one of their ends at each of two ports. A busy machine has thousands of others,
 * which are not looked at further.
 */
export function parseConnections(table: string, portA: number, portB: number): SocketRow[] {
  const [a, b] = [portA, portB].map((port) => port.toString(16).toUpperCase().padStart(4, "0"));
  const rows: SocketRow[] = [];
  const seen = new Set<string>();
  for (
    const [text, local, localPort, remote, remotePort, state, uid, inode = "0"] of table.matchAll(TCP_ROW)
  ) {
    if (!(localPort === a && remotePort === b) && !(localPort === b && remotePort === a)) continue;
    // The very same socket, named twice: its row without the number of the line says so.
    const row = text.slice(text.indexOf(":"));
    if (inode !== "0" && seen.has(row)) continue;
    seen.add(row);
    rows.push({
      local: { address: toAddress(local ?? ""), port: Number.parseInt(localPort ?? "", 16) },
      remote: { address: toAddress(remote ?? ""), port: Number.parseInt(remotePort ?? "", 16) },
      established: state === ESTABLISHED,
      uid: Number(uid),
      inode,
    });
  }
  return rows;
}

async function readTable(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    // A kernel without IPv6 has no tcp6; a sandbox may hide them all.
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied) {
      return undefined;
    }
    throw error;
  }
}

async function readTables(paths: readonly string[]): Promise<string | undefined> {
  const tables = (await Promise.all(paths.map(readTable))).filter((table) => table !== undefined);
  return tables.length === 0 ? undefined : tables.join("\n");
}

/** Returns the TCP tables as one text, or undefined where they cannot be read. */
export function readTcpTables(): Promise<string | undefined> {
  return readTables(TCP_TABLES);
}

/** Returns the other tables as one text. */
export async function readOtherTables(): Promise<string> {
  return await readTables(OTHER_TABLES) ?? "";
}

/** Returns the inodes of all sockets in tables of either kind. */
export function inodesOf(tables: string): Set<string> {
  const inodes = Array.from(tables.matchAll(TCP_ROW), ([, , , , , , , inode = ""]) => inode);
  //                                  Num  RefCount Protocol Flags Type St inode
  const local = Array.from(
    tables.matchAll(/^\w+: \w{8} \w{8} \w{8} \w{4} \w\w +(\d+)/gm),
    ([, inode = ""]) => inode,
  );
  return new Set([...inodes, ...local]);
}

/** Returns the inodes of the sockets that this process holds. */
export function ownSocketInodes(): Set<string> {
  const inodes = new Set<string>();
  // Nothing here touches a disk, and a pause would let the picture change while it is taken.
  for (const { name } of Deno.readDirSync("/proc/self/fd")) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(Deno.readLinkSync(`/proc/self/fd/${name}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch (error) {
      // The descriptor of the listing itself is gone by now.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return inodes;
}
