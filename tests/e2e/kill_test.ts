/** SIGKILL in the midst of uploads, again and again on one data folder: what was answered is there, and whole. */
import Database from "libsql";
import { join } from "../../base/std.ts";
import { ask, expectStatus, type Minted, Operator, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { rounds, serve, type Serving } from "../helpers/program.ts";
import { createRandom, SEED } from "../helpers/random.ts";
import { History, toContent, versionOf } from "../helpers/versions.ts";

const KILLS = Number(Deno.env.get("STRING_TEST_KILLS") || rounds(100, 10));
const KIB = 1024;
/** Who writes where, and how much at most. One path has two writers. */
const WRITERS = [
  { path: "small.bin", most: 60 * KIB },
  { path: "a/one.bin", most: 2048 * KIB },
  { path: "a/two.bin", most: 2048 * KIB },
  { path: "shared.bin", most: 512 * KIB },
  { path: "shared.bin", most: 512 * KIB },
];

/** A single use whose fate a kill may have cut off. */
interface Spending {
  readonly kind: "GET" | "PUT";
  readonly path: string;
  readonly minted: Minted;
  /** Whether its success was answered. */
  answered: boolean;
}

/** One data folder through many lives of the server. */
class Lives {
  readonly random = createRandom(SEED);
  readonly histories = new Map(WRITERS.map(({ path }) => [path, new History()]));
  spendings: Spending[] = [];
  secret = "";
  answeredPuts = 0;
  answeredSpendings = 0;
  #version = 0;

  constructor(readonly dataFolder: string) {}

  /** What must hold after a start, whatever the kill before it cut off. */
  async check(server: Serving, operator: Operator): Promise<void> {
    const workspace = join(this.dataFolder, "workspaces/eve");
    for (const [path, history] of this.histories) {
      const response = await fetch(toLink(server.url, path, this.secret));
      const bytes = await response.bytes();
      if (response.status === 404 && !history.hasAnswer) continue;
      expect(response.status, path).toBe(200);
      const version = versionOf(bytes);
      expect(version, `${path} is whole`).toBeDefined();
      expect(history.allows(version ?? -1), `${path} may be version ${version}`).toBe(true);
      history.restartFrom(version);
    }
    for (const spending of this.spendings) await this.#checkSpending(server, spending);
    this.spendings = [];
    const staged = await Array.fromAsync(Deno.readDir(join(workspace, ".string/staging")));
    expect(staged, "nothing is left in staging").toEqual([]);
    const makers = await Array.fromAsync(Deno.readDir(join(this.dataFolder, "makers")));
    expect(makers.length, "only this process is known as a maker").toBe(1);
    expect((await operator.call("GET", "/health")).body).toMatchObject({ ok: true, agents: 1 });
    expect(server.err()).not.toContain('"level":"error"');
  }

  async #checkSpending(server: Serving, { kind, path, minted, answered }: Spending): Promise<void> {
    // Asks for a verb that it has not: 403 from a live one, 401 from a dead one, and nothing is spent.
    const { status, body } = await ask(toLink(server.url, path, minted.secret), { method: "DELETE" });
    const isSpent = status === 401 && body["reason"] === "already_used";
    if (answered) expect(isSpent, `an answered ${kind} is spent: ${status}`).toBe(true);
    else expect(isSpent || status === 403, `a minted ${kind} is known: ${status}`).toBe(true);
    if (kind === "GET") return;
    const found = await ask(toLink(server.url, path, this.secret));
    if (answered) expect(found.text).toBe(minted.token_id);
    if (found.status === 200) expect(isSpent, "what is visible was spent").toBe(true);
    else expect(found.status).toBe(404);
  }

  /** Writes, mints and spends until the server is gone. */
  async work(server: Serving, operator: Operator): Promise<void> {
    const once = async (kind: Spending["kind"]) => {
      const path = kind === "GET" ? "fixed.txt" : `once/${++this.#version}.txt`;
      const minted = await operator.mint({ path_prefix: path, verbs: [kind], single_use: true });
      const spending: Spending = { kind, path, minted, answered: false };
      this.spendings.push(spending);
      const link = toLink(server.url, path, minted.secret);
      expectStatus(
        kind === "GET" ? await ask(link) : await put(link, minted.token_id),
        kind === "GET" ? 200 : 201,
      );
      spending.answered = true;
      this.answeredSpendings++;
    };
    const write = async ({ path, most }: typeof WRITERS[number]) => {
      const content = toContent(++this.#version, this.random(most > 64 * KIB ? 64 * KIB : 100, most));
      const answered = this.histories.get(path)?.begin(this.#version);
      const { status } = await put(toLink(server.url, path, this.secret), content);
      expect([200, 201]).toContain(status);
      answered?.();
      this.answeredPuts++;
    };
    let isGone = false;
    server.ended.then(() => isGone = true);
    const again = async (step: () => Promise<void>) => {
      try {
        while (!isGone) await step();
      } catch (error) {
        // Cut off in the midst, which only a refusal that the server itself has sent is not.
        if (error instanceof Error && /Expected/.test(error.message)) throw error;
      }
    };
    await Promise.all([
      ...WRITERS.map((writer) => again(() => write(writer))),
      again(() => once("GET")),
      again(() => once("PUT")),
    ]);
  }
}

function checkDatabase(dataFolder: string): void {
  const database = new Database(join(dataFolder, "string.db"), { readonly: true });
  try {
    expect(database.prepare("PRAGMA integrity_check").all()).toMatchObject([{ integrity_check: "ok" }]);
    expect(database.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
  } finally {
    database.close();
  }
}

Deno.test(`reports 13, 59: what was answered survives ${KILLS} times SIGKILL, whole (seed ${SEED})`, async () => {
  await withFolder(async (dataFolder) => {
    const lives = new Lives(dataFolder);
    for (let life = 0; life <= KILLS; life++) {
      await using server = await serve({ dataFolder });
      const operator = await Operator.of(server);
      if (life === 0) {
        await operator.pair();
        lives.secret = (await operator.mint()).secret;
        expectStatus(await put(toLink(server.url, "fixed.txt", lives.secret), "fixed"), 201);
      }
      await lives.check(server, operator);
      if (life % 10 === 0 || life === KILLS) checkDatabase(dataFolder);
      if (life === KILLS) break;
      const killAfterMs = lives.random(50, 300);
      const timer = setTimeout(() => server.kill("SIGKILL"), killAfterMs);
      try {
        await lives.work(server, operator);
        await server.ended;
      } finally {
        clearTimeout(timer);
      }
    }
    console.log(`answered before a kill: ${lives.answeredPuts} PUTs, ${lives.answeredSpendings} single uses`);
    // Else nothing was tried; a busy machine answers few requests before a kill.
    expect(lives.answeredPuts).toBeGreaterThan(KILLS / 4);
    expect(lives.answeredSpendings).toBeGreaterThan(KILLS / 4);
  });
});
