/** Report 55: guessing is slowed by the address that really called, and never for whoever holds the right secret. */
import { FailedCredentials } from "../../runtime/failed_credentials.ts";
import { expect } from "../helpers/expect.ts";
import { sendRaw } from "../helpers/raw.ts";
import type { TestServer } from "../helpers/server.ts";
import { bearer, fs, withServer } from "./support.ts";

/** One wrong credential, on the plane of that number. */
async function guess(server: TestServer, number: number, headers: Record<string, string>): Promise<Response> {
  const wrong = (number % 997).toString(36).padStart(43, "x");
  const response = await [
    () => server.fetch("/fs/a.txt", { headers: { ...headers, ...bearer(`caps_${wrong}`) } }),
    () => server.fetch(`/fs/a.txt?cap=caps_${wrong}`, { headers }),
    () => server.fetch("/agents", { headers: { ...headers, ...bearer(`adm_${wrong}`) } }),
    () => server.fetch("/capabilities", { headers: { ...headers, ...bearer(`agk_${wrong}`) } }),
    () => server.fetch(`/webhook/${wrong}`, { method: "POST", headers, body: "x" }),
  ][number % 5]?.() ?? Response.error();
  await response.body?.cancel();
  return response;
}

Deno.test("report 55: a thousand bad tokens from this machine are never limited, whatever address they claim", () =>
  withServer(async (server) => {
    for (let number = 0; number < 1000; number++) {
      const claimed = number % 2 === 0 ? `203.0.113.${number % 256}` : "198.51.100.7";
      const headers = { "x-forwarded-for": claimed, forwarded: `for=${claimed}`, "x-real-ip": claimed };
      expect((await guess(server, number, headers)).status).toBe(401);
    }
    expect(server.context.identity.failures.size).toBe(0);
  }));

Deno.test("report 55: behind one proxy the entry that the proxy added counts, and rotating the rest does not help", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    expect((await fs(server, "PUT", "a.txt", secret, { body: "mine" })).status).toBe(201);
    const statuses: number[] = [];
    for (let number = 0; number < 1000; number++) {
      const from = { "x-forwarded-for": `203.0.113.${number % 256}, 10.0.${number % 256}.1, 198.51.100.7` };
      const response = await guess(server, number, from);
      statuses.push(response.status);
      if (response.status === 429) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
      // Whoever holds the right secret is served from the very same address, all the while.
      if (number % 100 === 99) {
        const mine = await fs(server, "GET", "a.txt", secret, { headers: from });
        expect([mine.status, mine.text]).toEqual([200, "mine"]);
        const operator = await server.fetch("/agents", {
          headers: { ...from, ...bearer(server.adminToken) },
        });
        await operator.body?.cancel();
        expect(operator.status).toBe(200);
      }
    }
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.indexOf(429)).toBe(20);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(900);
    expect(server.context.identity.failures.size).toBe(1);

    const neighbour = await guess(server, 0, { "x-forwarded-for": "198.51.100.7, 198.51.100.8" });
    expect(neighbour.status).toBe(401);
    // From here nothing was forwarded, or the proxy wrote nonsense: the socket's address, which is this machine.
    expect((await guess(server, 0, {})).status).toBe(401);
    expect((await guess(server, 0, { "x-forwarded-for": "198.51.100.7, unknown" })).status).toBe(401);
  }, { flags: { trustedHops: "1" } }));

Deno.test("report 55: a known secret that is dead is told so, however often it comes, and costs nobody anything", () =>
  withServer(async (server) => {
    const { secret, token_id: id } = await server.mint({});
    await server.admin("DELETE", `/capabilities/${id}`);
    const from = { "x-forwarded-for": "198.51.100.9" };
    for (let number = 0; number < 100; number++) {
      const answer = await fs(server, "GET", "a.txt", secret, { headers: from });
      expect([answer.status, answer.reason]).toEqual([401, "revoked"]);
    }
    expect(server.context.identity.failures.size).toBe(0);
  }, { flags: { trustedHops: "1" } }));

Deno.test("report 55: two proxies, ports and split headers are counted from the right, as one list", () =>
  withServer(async (server) => {
    const wrong = (...forwarded: string[]) =>
      sendRaw(
        server.port,
        `GET /fs/a?cap=caps_${"x".repeat(43)} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n` +
          forwarded.map((value) => `x-forwarded-for: ${value}\r\n`).join("") + "connection: close\r\n\r\n",
      );
    for (let n = 0; n < 20; n++) {
      expect((await wrong(`203.0.113.${n}, 198.51.100.7:${1000 + n}, 192.0.2.1`)).status).toBe(401);
    }
    for (
      const same of [["198.51.100.7, 192.0.2.1"], ["198.51.100.7:9, 192.0.2.2:8"], [
        "1.2.3.4",
        "198.51.100.7",
        "192.0.2.1",
      ]]
    ) {
      expect([same, (await wrong(...same)).status]).toEqual([same, 429]);
    }
    for (let n = 0; n < 25; n++) await wrong(`[2001:db8:1:2::${n}]:${1000 + n}, 192.0.2.1`);
    expect((await wrong("2001:db8:1:2::ffff, 192.0.2.1")).status).toBe(429);
    // Too few entries: nobody trusted wrote one, so it is the socket's own address.
    expect((await wrong("198.51.100.7")).status).toBe(401);
    expect(server.context.identity.failures.size).toBe(2);
  }, { flags: { trustedHops: "2" } }));

Deno.test("FailedCredentials limits one address, forgives with time, and remembers a bounded number (report 55)", () => {
  const failures = new FailedCredentials();
  const nowMs = 1_000_000;
  const waits = Array.from({ length: 1000 }, () => failures.record("198.51.100.7", nowMs));
  expect(waits.slice(0, 20)).toEqual(Array(20).fill(0));
  expect(waits.slice(20).every((seconds) => seconds > 0 && seconds <= 60)).toBe(true);
  expect(failures.record("198.51.100.8", nowMs)).toBe(0);
  expect(failures.record("198.51.100.7", nowMs + 10 * 60_000)).toBe(0);

  // One network of IPv6 is one client: its 2^64 addresses cost nothing.
  const six = Array.from(
    { length: 100 },
    (_, n) => failures.record(`2001:db8:1:2::${n.toString(16)}`, nowMs),
  );
  expect(six.filter((seconds) => seconds > 0).length).toBe(80);
  for (const own of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
    for (let n = 0; n < 100; n++) expect(failures.record(own, nowMs)).toBe(0);
  }
  for (let n = 0; n < 50_000; n++) failures.record(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, nowMs);
  expect(failures.size).toBe(10_000);
});
