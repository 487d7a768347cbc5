import { findPeerUser, PeerUser } from "../../runtime/peer_user.ts";
import { inodesOf, ownSocketInodes, parseConnections, readTcpTables } from "../../runtime/socket_table.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { canRun, runTool } from "../helpers/tools.ts";
import { HAS_NODE, NEEDS_NODE } from "../trust/support.ts";

const isLinux = Deno.build.os === "linux";
const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const NEEDS_LITTLE_ENDIAN = "the tables below are of a little-endian machine";

const HEAD =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

/** What a row of the kernel's table says; ends as the kernel writes them. */
interface Row {
  local: string;
  remote: string;
  state?: string;
  uid?: number;
  inode?: number;
}

const ESTABLISHED = "01";

function toTable(...rows: Row[]): string {
  return HEAD +
    rows.map(({ local, remote, state = ESTABLISHED, uid = 1000, inode = 4711 }, index) =>
      `${String(index).padStart(4)}: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000 ` +
      `${String(uid).padStart(5)}        0 ${inode} 1 0000000045d5bce3 20 4 30 10 -1\n`
    ).join("");
}

// The client has port 50000 (C350), the server 3923 (0F53).
const CLIENT = "0100007F:C350";
const SERVER = "0100007F:0F53";
const theirs: Row = { local: CLIENT, remote: SERVER };
const ours: Row = { local: SERVER, remote: CLIENT, uid: 0, inode: 4712 };
const peer = { address: "127.0.0.1", port: 50_000 };
const find = (...rows: Row[]) => findPeerUser(toTable(...rows), peer, 3923);

const MAPPED = "0000000000000000FFFF00000100007F";
const LOOPBACK6 = "00000000000000000000000001000000";

testIf(
  isLittleEndian,
  NEEDS_LITTLE_ENDIAN,
  "parseConnections() reads both tables' addresses, ports, users",
  () => {
    const table = toTable(
      theirs,
      { local: `${LOOPBACK6}:C350`, remote: `${LOOPBACK6}:0F53`, uid: 33, inode: 5 },
      { local: `${MAPPED}:0F53`, remote: `${MAPPED}:C350`, state: "08", uid: 4294967294, inode: 0 },
      { local: "B80D0120020001000400030006000500:C350", remote: "010200C0:0F53" },
      { local: "0100007F:C351", remote: SERVER },
      { local: "0100007F:0F53", remote: "00000000:0000", state: "0A" },
    );
    const v4 = "0:0:0:0:0:ffff:7f00:1";
    expect(parseConnections(table, 50_000, 3923)).toEqual([
      {
        local: { address: v4, port: 50_000 },
        remote: { address: v4, port: 3923 },
        established: true,
        uid: 1000,
        inode: "4711",
      },
      {
        local: { address: "0:0:0:0:0:0:0:1", port: 50_000 },
        remote: { address: "0:0:0:0:0:0:0:1", port: 3923 },
        established: true,
        uid: 33,
        inode: "5",
      },
      {
        local: { address: v4, port: 3923 },
        remote: { address: v4, port: 50_000 },
        established: false,
        uid: 4294967294,
        inode: "0",
      },
      {
        local: { address: "2001:db8:1:2:3:4:5:6", port: 50_000 },
        remote: { address: "0:0:0:0:0:ffff:c000:201", port: 3923 },
        established: true,
        uid: 1000,
        inode: "4711",
      },
    ]);
  },
);

testIf(
  isLittleEndian,
  NEEDS_LITTLE_ENDIAN,
  "findPeerUser() returns the user of the one open, mirrored pair of rows",
  () => {
    expect(find(theirs, ours)).toBe(1000);
    expect(find(ours, { ...theirs, uid: 0 })).toBe(0);
    const mapped = { local: `${MAPPED}:C350`, remote: `${MAPPED}:0F53` };
    expect(find(mapped, ours), "a client that dialled ::ffff:127.0.0.1").toBe(1000);
    expect(find(theirs, { ...ours, local: `${MAPPED}:0F53`, remote: `${MAPPED}:C350` }), "a server on [::]")
      .toBe(1000);
  },
);

testIf(
  isLittleEndian,
  NEEDS_LITTLE_ENDIAN,
  "findPeerUser() returns nothing for whatever may be somebody else's",
  () => {
    const elsewhere: Row = { local: CLIENT, remote: "0200007F:0F53", uid: 0, inode: 4713 };
    const cases: Record<string, Row[]> = {
      "no row": [],
      "the server's row alone": [ours],
      "the peer's row alone": [theirs],
      "a peer that closed (user 0, no inode)": [{ ...theirs, state: "05", uid: 0, inode: 0 }, ours],
      "an orphan shown as open": [{ ...theirs, uid: 0, inode: 0 }, ours],
      "a peer that will send no more": [{ ...theirs, state: "05" }, { ...ours, state: "08" }],
      "a server that saw the end": [theirs, { ...ours, state: "08" }],
      "a server's row without an owner": [theirs, { ...ours, inode: 0 }],
      "a second row of another user": [theirs, { ...theirs, uid: 33 }, ours],
      "a second row towards another address": [theirs, elsewhere, ours],
      "another address's row, and ours": [elsewhere, ours],
      "two connections at our end": [theirs, ours, { ...ours, local: "0200007F:0F53" }],
      "another port": [{ ...theirs, local: "0100007F:C351" }, { ...ours, remote: "0100007F:C351" }],
      "another address": [{ ...theirs, local: "0200007F:C350" }, { ...ours, remote: "0200007F:C350" }],
    };
    for (const [name, rows] of Object.entries(cases)) {
      expect([name, find(...rows)]).toEqual([name, undefined]);
    }
  },
);

Deno.test("findPeerUser() and inodesOf() go through thirty thousand rows quickly", () => {
  const others = Array.from({ length: 30_000 }, (_, index): Row => ({
    local: `0100007F:${(index + 1024).toString(16).toUpperCase().padStart(4, "0")}`,
    remote: "0100007F:1F90",
    inode: index + 10_000,
  }));
  const table = toTable(...others, theirs, ours);
  const begunMs = performance.now();
  findPeerUser(table, peer, 3923);
  expect(inodesOf(table).size).toBe(30_002);
  // It takes about 50 ms; the bound leaves room for a machine that is busy with other tests.
  expect(performance.now() - begunMs).toBeLessThan(2_000);
});

/** A connection of this process with itself. */
async function connect(): Promise<
  { listener: Deno.TcpListener; near: Deno.TcpConn; far: Deno.TcpConn } & Disposable
> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  return {
    listener,
    near,
    far,
    [Symbol.dispose]() {
      for (const each of [listener, near, far]) each.close();
    },
  };
}

testIf(
  isLinux,
  "Linux tells whose a connection is",
  "PeerUser.isSender() knows this user, until the runtime says that it left",
  async () => {
    const peerUser = await PeerUser.create();
    using pair = await connect();
    const abort = new AbortController();
    const connection = {
      peer: { address: "127.0.0.1", port: pair.near.localAddr.port },
      serverPort: pair.listener.addr.port,
      signal: abort.signal,
    };
    expect(await peerUser?.isSender(connection)).toBe(true);
    expect(await peerUser?.isSender({ ...connection, serverPort: connection.serverPort + 1 })).toBe(false);
    const asked = peerUser?.isSender(connection);
    abort.abort();
    expect(await asked).toBe(false);
  },
);

testIf(
  isLinux && HAS_NODE,
  isLinux ? NEEDS_NODE : "Linux tells whose a connection is",
  "PeerUser.isSender() refuses while this process holds a socket that was reset unnoticed",
  async () => {
    const peerUser = await PeerUser.create();
    using pair = await connect();
    const connection = {
      peer: { address: "127.0.0.1", port: pair.near.localAddr.port },
      serverPort: pair.listener.addr.port,
      signal: new AbortController().signal,
    };
    const program = new URL("../trust/programs/sender.mjs", import.meta.url).pathname;
    const options = {
      host: "127.0.0.1",
      port: pair.listener.addr.port,
      pauseMs: 300,
      end: "reset",
      request: "x",
    };
    const [dead] = await Promise.all([
      pair.listener.accept(),
      runTool(["node", program, JSON.stringify(options)]),
    ]);
    expect(await peerUser?.isSender(connection)).toBe(false);
    dead.close();
    expect(await peerUser?.isSender(connection)).toBe(true);
  },
);

testIf(
  isLinux,
  "only Linux has /proc",
  "ownSocketInodes() lists what this process holds, and the tables list it too",
  async () => {
    const before = ownSocketInodes();
    using _pair = await connect();
    const opened = ownSocketInodes().difference(before);
    expect(opened.size).toBe(3);
    expect(opened.difference(inodesOf(await readTcpTables() ?? "")).size).toBe(0);
  },
);

const unshare = ["unshare", "--user", "--map-user=65534", "--map-group=65534"];
testIf(
  isLinux && await canRun(...unshare, "true"),
  "this machine lets no user make a namespace",
  "PeerUser.create() tells nothing where other users are shown under this one's number",
  async () => {
    const module = new URL("../../runtime/peer_user.ts", import.meta.url).href;
    const script = `const { PeerUser } = await import(${
      JSON.stringify(module)
    }); console.log(Deno.uid(), await PeerUser.create() === undefined)`;
    const { out, err } = await runTool([...unshare, Deno.execPath(), "eval", script], {
      cwd: new URL("../..", import.meta.url).pathname,
    });
    expect([out.trim(), err]).toEqual(["65534 true", ""]);
  },
);
