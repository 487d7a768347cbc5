/**
 * What a record costs, in microseconds: the file engine as String uses it beside `@libsql/client`, each on a file of its
 * own with the same tables and rows.
 *
 * The two take turns within every round, so that a busy neighbour slows both; believe the ratio, which is the median of
 * the rounds' ratios, before the times. Run: `deno run -A bench/database_bench.ts`. Source: ADR 0002.
 */
import { createClient } from "@libsql/client";
import { silentLog } from "../base/log.ts";
import { join } from "../base/std.ts";
import type { NewCapability } from "../store/database/capability_rows.ts";
import { type Database, openDatabase } from "../store/database/open.ts";

const ROUNDS = 11;
const NOW = 1_800_000_000_000;
const AGENT = {
  incarnation: "inc_1",
  agent_id: "eve",
  home: null,
  created_at: NOW,
  webhook_counter: 0,
  webhook_hash: "w",
};
const BY_HASH = "SELECT * FROM capabilities WHERE secret_hash = ?";
// The same conditions as the file engine's own statement.
const CONSUME = "UPDATE capabilities SET consumed_at = ? WHERE token_id = ? AND consumed_at IS NULL " +
  "AND revoked_at IS NULL AND typeof(expires_at) = 'integer' AND expires_at > ? " +
  `AND expires_at <= ${Number.MAX_SAFE_INTEGER} ` +
  "AND EXISTS (SELECT 1 FROM agents WHERE agents.incarnation = capabilities.incarnation) RETURNING token_id";

type Call = (n: number) => unknown;

/** Calls to be compared: `count` per round, `width` of them at once. */
interface Comparison {
  readonly name: string;
  readonly count: number;
  readonly width: number;
  readonly file: Call;
  readonly client: Call;
}

const WARM_UP = 64;

/** How many calls a comparison makes on each side: that many tokens it needs. */
function callsOf({ count, width }: Pick<Comparison, "count" | "width">): number {
  return WARM_UP + ROUNDS * Math.ceil(count / width) * width;
}

function hashOf(n: number): string {
  return String(n).padStart(64, "0");
}

function capability(n: number): NewCapability {
  return {
    token_id: `cap_${n}`,
    secret_hash: hashOf(n),
    agent_id: "eve",
    path_prefix: "in",
    verbs: "PUT,GET",
    author: "outside",
    single_use: 1,
    created_at: NOW,
    expires_at: NOW + 3_600_000,
  };
}

/** Fails when a consumption found nothing to consume: an UPDATE of no row would look fast. */
function expectWon(won: boolean): void {
  if (!won) throw new Error("This token was spent already");
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(line + "\n"));
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** Returns the microseconds per call of `count` calls, the first of them numbered `first`. */
async function time(call: Call, first: number, count: number, width: number): Promise<number> {
  const begun = performance.now();
  let next = first;
  for (let done = 0; done < count; done += width) {
    if (width === 1) await call(next++);
    else await Promise.all(Array.from({ length: width }, () => call(next++)));
  }
  return (performance.now() - begun) * 1000 / (next - first);
}

async function compare({ name, count, width, file, client }: Comparison): Promise<void> {
  const times: { file: number[]; client: number[] } = { file: [], client: [] };
  for (let n = 0; n < WARM_UP; n++) {
    await file(n);
    await client(n);
  }
  let first = WARM_UP;
  for (let round = 0; round < ROUNDS; round++) {
    const sides = [["file", file], ["client", client]] as const;
    // Who begins changes from round to round.
    for (const [side, call] of round % 2 === 0 ? sides : [...sides].reverse()) {
      times[side].push(await time(call, first, count, width));
    }
    first += Math.ceil(count / width) * width;
  }
  const ratios = times.client.map((value, round) => value / (times.file[round] ?? Number.NaN));
  const spread = `${Math.min(...ratios).toFixed(1)}..${Math.max(...ratios).toFixed(1)}`;
  const columns = [
    median(times.file),
    Math.min(...times.file),
    median(times.client),
    Math.min(...times.client),
  ];
  print(
    name.padEnd(28) + columns.map((value) => value.toFixed(1).padStart(9)).join("") +
      `${median(ratios).toFixed(1).padStart(8)}  (${spread})`,
  );
}

async function openFilled(path: string, rows: number): Promise<Database> {
  const db = await openDatabase({ url: path, shared: true, log: silentLog, clock: { now: () => NOW } });
  await db.agents.pair({ agent: AGENT });
  for (let n = 0; n < rows; n += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, m) => db.capabilities.insert(capability(n + m))));
  }
  return db;
}

const ALONE = { count: 300, width: 1 };
const CROWD = { count: 1600, width: 32 };
const rows = Math.ceil((callsOf(ALONE) + callsOf(CROWD)) / 500) * 500;
const folder = await Deno.makeTempDir();
try {
  const db = await openFilled(join(folder, "file.db"), rows);
  await (await openFilled(join(folder, "client.db"), rows)).close();
  const client = createClient({ url: `file:${join(folder, "client.db")}` });
  const synchronous = (await client.execute("PRAGMA synchronous")).rows[0]?.synchronous;
  if (synchronous !== 2) {
    throw new Error("The client does not write with FULL: the comparison would be unfair");
  }

  const key = (n: number) => hashOf((n * 7919) % rows);
  // Each comparison spends tokens of its own: those of the crowd come after those that are spent alone.
  const spending = (offset: number) => ({
    file: async (n: number) =>
      expectWon(
        await db.capabilities.spend({ tokenId: `cap_${offset + n}`, nowMs: NOW, begunMs: NOW }),
      ),
    client: async (n: number) => {
      const [result] = await client.batch([{ sql: CONSUME, args: [NOW, `cap_${offset + n}`, NOW] }], "write");
      expectWon(result?.rows.length === 1);
    },
  });

  print(`${rows} rows; microseconds per call; ratio = client / file, median of ${ROUNDS} rounds`);
  print(
    " ".repeat(28) + ["file", "best", "client", "best"].map((head) => head.padStart(9)).join("") + "   ratio",
  );
  await compare({
    name: "lookup by hash",
    count: 2000,
    width: 1,
    file: (n) => db.capabilities.findByHash(key(n)),
    client: (n) => client.execute({ sql: BY_HASH, args: [key(n)] }),
  });
  await compare({
    name: "PRAGMA data_version",
    count: 2000,
    width: 1,
    file: () => db.engine.changedElsewhere(),
    client: () => client.execute("PRAGMA data_version"),
  });
  await compare({ name: "consume FULL, 1 at a time", ...ALONE, ...spending(0) });
  await compare({ name: "consume FULL, 32 at once", ...CROWD, ...spending(callsOf(ALONE)) });
  client.close();
  await db.close();
} finally {
  await Deno.remove(folder, { recursive: true });
}
