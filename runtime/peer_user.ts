/**
 * Whether the program at the other end of a loopback connection runs as the server's own user, as the kernel tells it.
 *
 * Asked anew for each request, never remembered. The danger is a connection that no longer is: its sender is gone from
 * the kernel's list, and whatever took its port (or has it towards another address of this machine) would be taken for
 * the sender. Hence three things must hold together: one pair of rows, mirrored and open at both ends; no socket of this
 * process that the kernel has forgotten; and no sign from the runtime that this request's connection ended.
 * Source: architecture.md "Who is the operator"; ADR 0005.
 */
import { toCanonicalAddress } from "../base/addresses.ts";
import {
  type Endpoint,
  inodesOf,
  ownSocketInodes,
  parseConnections,
  readOtherTables,
  readTcpTables,
} from "./socket_table.ts";

/** The connection that a request came over. */
export interface Connection {
  /** The other end. */
  readonly peer: Endpoint;
  /** The port of this machine that the peer is connected to. */
  readonly serverPort: number;
  /** Aborts when the connection ends. Tells nothing of what was before it was first asked for. */
  readonly signal: AbortSignal;
}

/**
 * How often to look whether a forgotten socket has been closed meanwhile: after 2, 4, 8 … ms, half a second in all. On a
 * busy machine the runtime needs a while to close what a client has reset, and the operator must not be refused for it.
 */
const LOOKS = 8;
/** How often to read the kernel's list again when it does not tell who the peer is. */
const LOOKS_AT_TABLE = 4;
const FIRST_LOOK_MS = 2;

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Returns the user of the one connection between `peer` and `serverPort` in a TCP table.
 *
 * Undefined when there is none, when either end has begun to close, when nobody holds one of the ends any more, and
 * when there is more than one: then it cannot be told which sent the request.
 */
export function findPeerUser(table: string, peer: Endpoint, serverPort: number): number | undefined {
  const address = toCanonicalAddress(peer.address);
  const isPeer = (end: Endpoint) => end.port === peer.port && end.address === address;
  const rows = parseConnections(table, peer.port, serverPort);
  const [theirs, ...moreTheirs] = rows.filter(({ local, remote }) =>
    isPeer(local) && remote.port === serverPort
  );
  const [ours, ...moreOurs] = rows.filter(({ local, remote }) => isPeer(remote) && local.port === serverPort);
  if (theirs === undefined || ours === undefined || moreTheirs.length + moreOurs.length > 0) return undefined;
  if (theirs.remote.address !== ours.local.address) return undefined;
  const open = [theirs, ours].every(({ established, inode }) => established && inode !== "0");
  return open ? theirs.uid : undefined;
}

/**
 * Returns whether other users are shown under this process's own number: in a user namespace all those without a
 * number in it share the overflow one.
 */
async function isSharedUid(uid: number): Promise<boolean> {
  try {
    const overflow = Number(await Deno.readTextFile("/proc/sys/kernel/overflowuid"));
    const map = await Deno.readTextFile("/proc/self/uid_map");
    return uid === overflow && !/^\s*0\s+0\s+4294967295\s*$/.test(map);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false; // a kernel without user namespaces
    throw error;
  }
}

/** Tells the server's own user from others. */
export class PeerUser {
  readonly #uid: number;
  /** Sockets that this process was started with and that belong to another network: no table here lists them. */
  readonly #foreign: ReadonlySet<string>;

  private constructor(uid: number, foreign: ReadonlySet<string>) {
    this.#uid = uid;
    this.#foreign = foreign;
  }

  /** Returns undefined where this machine cannot tell whose a connection is. */
  static async create(): Promise<PeerUser | undefined> {
    const uid = Deno.build.os === "linux" ? Deno.uid() : null;
    const table = await readTcpTables();
    if (uid === null || table === undefined || await isSharedUid(uid)) return undefined;
    return new PeerUser(uid, await forgottenSockets(table, new Set()));
  }

  /** Returns whether the sender of a request, still connected, runs as this server's user. */
  async isSender(connection: Connection): Promise<boolean> {
    const { peer, serverPort, signal } = connection;
    let table = await readTcpTables() ?? "";
    let user = findPeerUser(table, peer, serverPort);
    // The kernel lists its sockets piece by piece: while others come and go, one may be left out or named twice.
    for (let look = 0; user === undefined && look < LOOKS_AT_TABLE && !signal.aborted; look++) {
      await later(FIRST_LOOK_MS * 2 ** look);
      table = await readTcpTables() ?? "";
      user = findPeerUser(table, peer, serverPort);
    }
    if (user !== this.#uid) return false;
    let forgotten = await forgottenSockets(table, this.#foreign);
    for (let look = 0; forgotten.size > 0 && look < LOOKS; look++) {
      await later(FIRST_LOOK_MS * 2 ** look);
      // Closed meanwhile, or only left out of the list before.
      forgotten = forgotten.intersection(ownSocketInodes()).difference(inodesOf(await readTcpTables() ?? ""));
    }
    await later(0); // what the runtime knows by now has reached the signal then
    return forgotten.size === 0 && !signal.aborted;
  }
}

/**
 * Returns the sockets of this process, but for `known` ones, that no table lists: their peers reset them.
 *
 * `table` was read before. What was opened since is looked for once more, which costs as much as the first look.
 */
async function forgottenSockets(table: string, known: ReadonlySet<string>): Promise<Set<string>> {
  const own = ownSocketInodes().difference(known);
  const unlisted = own.difference(inodesOf(table)).difference(inodesOf(await readOtherTables()));
  return unlisted.size === 0 ? unlisted : unlisted.difference(inodesOf(await readTcpTables() ?? ""));
}
