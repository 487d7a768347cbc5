/** Two processes on one data folder: one winner of every race, and what one is told the other knows at once. */
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { withFolder } from "../helpers/folder.ts";
import { rounds, serve, type Serving } from "../helpers/program.ts";
import { openEvents } from "../helpers/sse.ts";

const ROUNDS = rounds(100, 10);
const RACERS = 50;

interface Pair {
  readonly servers: readonly [Serving, Serving];
  readonly one: Operator;
  readonly two: Operator;
}

async function withPair(use: (pair: Pair) => Promise<void>): Promise<void> {
  await withFolder(async (dataFolder) => {
    await using first = await serve({ dataFolder, args: ["--shared"] });
    await using second = await serve({ dataFolder, args: ["--shared"] });
    const [one, two] = [
      await Operator.of(first),
      new Operator(second.url, (await Operator.of({ url: second.url, dataFolder })).token),
    ];
    await one.pair();
    await use({ servers: [first, second], one, two });
    for (const { err } of [first, second]) expect(err()).not.toContain('"level":"error"');
  });
}

/** Lets fifty race for one capability over both processes, and checks that one has won and all others know why. */
async function race(
  { servers, one, two }: Pair,
  round: number,
  verb: "GET" | "PUT",
  path: string,
): Promise<void> {
  const minted = await (round % 2 === 0 ? one : two).mint({
    path_prefix: path,
    verbs: [verb],
    single_use: true,
  });
  const answers = await Promise.all(Array.from({ length: RACERS }, (_, racer) => {
    const link = toLink(servers[racer % 2 === 0 ? 0 : 1].url, path, minted.secret);
    return verb === "GET" ? ask(link) : put(link, `racer ${racer}`);
  }));
  const won = answers.filter(({ status }) => status < 300);
  expect(won.length, `winners of round ${round}`).toBe(1);
  for (const { status, body, text } of answers.filter((answer) => answer.status >= 300)) {
    expect([status, body["reason"]], text).toEqual([401, "already_used"]);
  }
}

Deno.test(`report 2: of ${RACERS} GETs over two processes one wins, ${ROUNDS} times`, () =>
  withPair(async (pair) => {
    const { secret } = await pair.one.mint();
    expectStatus(await put(toLink(pair.one.url, "prize.txt", secret), "prize"), 201);
    for (let round = 0; round < ROUNDS; round++) await race(pair, round, "GET", "prize.txt");
  }));

Deno.test(`report 2: of ${RACERS} PUTs over two processes one lands, ${ROUNDS} times`, () =>
  withPair(async (pair) => {
    const { secret } = await pair.one.mint();
    for (let round = 0; round < ROUNDS; round++) {
      await race(pair, round, "PUT", `prize-${round}.txt`);
      const landed = await ask(toLink(pair.two.url, `prize-${round}.txt`, secret));
      expect(expectStatus(landed, 200).text).toMatch(/^racer \d+$/);
    }
  }));

Deno.test(`what one process revokes, the other refuses at the very next request, ${ROUNDS} times`, () =>
  withPair(async ({ one, two }) => {
    const { secret } = await one.mint();
    expectStatus(await put(toLink(one.url, "a.txt", secret), "a"), 201);
    for (let round = 0; round < ROUNDS; round++) {
      const [minter, other] = round % 2 === 0 ? [one, two] : [two, one];
      const minted = await minter.mint({ verbs: ["GET"] });
      // Both remember it by now.
      for (const { url } of [minter, other]) {
        expectStatus(await ask(toLink(url, "a.txt", minted.secret)), 200);
      }
      await minter.revoke(minted.token_id);
      const refused = await ask(toLink(other.url, "a.txt", minted.secret));
      expect(expectStatus(refused, 401).body["reason"]).toBe("revoked");
    }
  }));

Deno.test("report 5: an agent that one process deletes is gone for the other, also under its name", () =>
  withPair(async ({ one, two }) => {
    for (let round = 0; round < 5; round++) {
      await one.pair();
      const { secret } = await one.mint();
      const link = toLink(two.url, "a.txt", secret);
      expect([200, 201]).toContain((await put(link, "a")).status);
      expect((await one.call("DELETE", "/agents/eve")).body["deleted"]).toBe(true);
      expect((await ask(link)).status).toBe(401);
      await two.pair();
      expect((await ask(link)).status, "the new one of that name is another").toBe(401);
      expect((await ask(toLink(one.url, "a.txt", secret))).status).toBe(401);
    }
  }));

Deno.test("an event that one process takes reaches the stream of the other", () =>
  withPair(async ({ one, two }) => {
    const paired = await one.pair("eve", { webhook: true, key: true });
    const headers = { authorization: `Bearer ${paired["agent_key"]}` };
    await using events = await openEvents(`${two.url}/events/stream`, headers);
    expect((await events.next())?.event).toBe("ready");
    for (const text of ["first", "second"]) {
      const sent = await ask(String(paired["webhook_url"]), {
        method: "POST",
        headers: { "content-type": "text/plain" },
        body: text,
      });
      expectStatus(sent, 202);
      expect(await events.next()).toMatchObject({ event: "event", data: { text, agentId: "eve" } });
    }
    expect((await one.call("DELETE", "/agents/eve")).body["deleted"]).toBe(true);
    expect(await events.next(), "the stream ends with its agent").toBeUndefined();
  }));
