/** Two processes on one libSQL server and one data folder: records in common, and what happens when it goes away. */
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { until } from "../helpers/deadline.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { rounds, serve, type Serving } from "../helpers/program.ts";
import { testIf } from "../helpers/skip.ts";
import { createSqld, SQLD, type Sqld } from "../store/database/programs/sqld.ts";

const ROUNDS = rounds(20, 5);

interface Setting {
  readonly database: Sqld;
  readonly servers: readonly [Serving, Serving];
  readonly one: Operator;
  readonly two: Operator;
}

function testWithServer(name: string, use: (setting: Setting) => Promise<void>): void {
  testIf(
    SQLD !== undefined && SQLD !== "",
    "STRING_TEST_SQLD does not name a libSQL server",
    name,
    () =>
      withFolder(async (dataFolder) => {
        const database = await createSqld();
        try {
          await database.start();
          const options = { dataFolder, args: ["--db", database.url] };
          await using first = await serve(options);
          await using second = await serve(options);
          const one = await Operator.of(first);
          await one.pair();
          await use({ database, servers: [first, second], one, two: new Operator(second.url, one.token) });
        } finally {
          await database.remove();
        }
      }),
  );
}

testWithServer(
  "with --db two processes pair, mint, write and read in common, and see a revocation at once",
  async ({ one, two }) => {
    const { secret } = await one.mint();
    expectStatus(await put(toLink(two.url, "a.txt", secret), "from two"), 201);
    expect((await ask(toLink(one.url, "a.txt", secret))).text).toBe("from two");
    for (let round = 0; round < ROUNDS; round++) {
      const [minter, other] = round % 2 === 0 ? [one, two] : [two, one];
      const minted = await minter.mint({ verbs: ["GET"] });
      for (const { url } of [minter, other]) {
        expectStatus(await ask(toLink(url, "a.txt", minted.secret)), 200);
      }
      await minter.revoke(minted.token_id);
      expect(expectStatus(await ask(toLink(other.url, "a.txt", minted.secret)), 401).body["reason"]).toBe(
        "revoked",
      );
    }
    expect((await two.call("DELETE", "/agents/eve")).body["deleted"]).toBe(true);
    expectStatus(await ask(toLink(one.url, "a.txt", secret)), 401);
  },
);

testWithServer("report 2: with --db a single use has one winner over two processes", async ({ one, two }) => {
  expectStatus(await put(toLink(one.url, "prize", (await one.mint()).secret), "prize"), 201);
  for (let round = 0; round < ROUNDS; round++) {
    const { secret } = await one.mint({ verbs: [round % 2 === 0 ? "GET" : "PUT"], single_use: true });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, racer) => {
      const link = toLink((racer % 2 === 0 ? one : two).url, "prize", secret);
      return round % 2 === 0 ? ask(link) : put(link, `racer ${racer}`);
    }));
    const lost = answers.filter(({ status }) => status >= 300);
    expect(lost.length, `losers of round ${round}`).toBe(19);
    for (const { status, body, text } of lost) {
      expect([status, body["reason"]], text).toEqual([401, "already_used"]);
    }
  }
});

testWithServer(
  "report 44: a database server that stops is 503 with Retry-After, and all is well once it is back",
  async ({ database, servers, one }) => {
    const { secret } = await one.mint();
    const link = toLink(one.url, "a.txt", secret);
    expectStatus(await put(link, "kept"), 201);
    await database.stop();
    const asked = [
      await ask(`${one.url}/health`),
      await ask(link),
      await put(link, "not now"),
      await one.call("POST", "/agents", { agent_id: "bob" }),
      await one.call("GET", "/capabilities"),
    ];
    for (const answer of asked) {
      expectStatus(answer, 503);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(answer.text).not.toContain(database.url.slice("http://".length));
    }
    await database.start();
    await until("the server is healthy again", async () => (await ask(`${one.url}/health`)).status === 200);
    expect(expectStatus(await ask(link), 200).text).toBe("kept");
    expectStatus(await put(link, "new"), 200);
    for (let n = 0; n < 20; n++) await one.mint();
    for (const server of servers) expect((await server.stop()).code).toBe(0);
  },
);
