import { effectiveClient, FailedCredentials } from "../../runtime/failed_credentials.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";

const NOW = 1_800_000_000_000;

function failTimes(failures: FailedCredentials, address: string, times: number, nowMs = NOW): number {
  let wait = 0;
  for (let n = 0; n < times; n++) wait = failures.record(address, nowMs);
  return wait;
}

Deno.test("record() allows twenty failures at once and one more every three seconds (SYS-ERR-05)", () => {
  const failures = new FailedCredentials();
  expect(failTimes(failures, "203.0.113.1", 20)).toBe(0);
  expect(failures.record("203.0.113.1", NOW)).toBe(3);
  expect(failTimes(failures, "203.0.113.1", 1000), "the wait does not grow without end").toBe(3);
  expect(failures.record("203.0.113.1", NOW + 6_000)).toBe(0);
  expect(failures.record("203.0.113.1", NOW + 6_000)).toBe(3);
  expect(failures.record("203.0.113.2", NOW), "another address").toBe(0);
  expect(failTimes(failures, "203.0.113.1", 20, NOW + 86_400_000)).toBe(0);
});

Deno.test("record() survives a clock that goes back", () => {
  const failures = new FailedCredentials();
  failTimes(failures, "203.0.113.1", 20);
  expect(failures.record("203.0.113.1", NOW - 3_600_000)).toBe(3);
});

Deno.test("record() never slows a client on this machine (SYS-ERR-05)", () => {
  const failures = new FailedCredentials();
  for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "[::1]"]) {
    expect(failTimes(failures, address, 100), address).toBe(0);
  }
  expect(failures.size).toBe(0);
});

Deno.test("record() counts an IPv6 /64 as one client and forgets the longest unseen (report 55)", () => {
  const failures = new FailedCredentials();
  for (let n = 0; n < 20; n++) failures.record(`2001:db8:0:1::${n.toString(16)}`, NOW);
  expect(failures.record("2001:db8:0:1:ffff::1", NOW)).toBe(3);
  expect(failures.record("2001:db8:0:2::1", NOW)).toBe(0);
  for (let n = 0; n < 20_000; n++) failures.record(`203.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, NOW);
  expect(failures.size).toBe(10_000);
});

Deno.test("effectiveClient() counts trusted hops from the right (report 55)", () => {
  const rows: [string | null, number, string][] = [
    [null, 1, "192.0.2.1"],
    ["203.0.113.9", 0, "192.0.2.1"],
    ["203.0.113.9", 1, "203.0.113.9"],
    ["127.0.0.1, 203.0.113.9", 1, "203.0.113.9"],
    ["127.0.0.1, 203.0.113.9, 198.51.100.1", 2, "203.0.113.9"],
    ["203.0.113.9", 2, "192.0.2.1"],
    ["junk", 1, "192.0.2.1"],
    ["", 1, "192.0.2.1"],
    ["203.0.113.9,, ", 1, "203.0.113.9"],
    ["2001:db8::1", 1, "2001:db8::1"],
  ];
  for (const [header, hops, client] of rows) {
    expect([header, hops, effectiveClient("192.0.2.1", header, hops)]).toEqual([header, hops, client]);
  }
});

Deno.test("made-up forwarding headers win nothing, and a valid secret is never locked out (SYS-ERR-05, report 55)", async () => {
  await using server = await startServer({ flags: { trustedHops: "1" } });
  const { secret, token_id } = await server.mint({});
  const ask = async (shown: string, forwarded: string) => {
    const response = await server.fetch(`/fs/none?cap=${shown}`, {
      headers: { "x-forwarded-for": forwarded },
    });
    await response.body?.cancel();
    return response.status;
  };
  const statuses = new Map<number, number>();
  for (let n = 0; n < 60; n++) {
    const status = await ask(`caps_${String(n).padStart(43, "x")}`, `10.0.0.${n}, 203.0.113.9`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect(statuses.get(401)).toBe(20);
  expect(statuses.get(429)).toBe(40);
  expect(await ask(secret, "203.0.113.9"), "a living secret").toBe(404);
  await server.admin("DELETE", `/capabilities/${token_id}`);
  for (let n = 0; n < 30; n++) expect(await ask(secret, "203.0.113.9"), "a known but dead secret").toBe(401);
});

Deno.test("forwarding headers count for nothing unless hops are configured (report 55)", async () => {
  await using server = await startServer();
  for (let n = 0; n < 40; n++) {
    const response = await server.fetch(`/fs/a?cap=caps_${"x".repeat(43)}`, {
      headers: { "x-forwarded-for": "203.0.113.9" },
    });
    await response.body?.cancel();
    expect(response.status, "the client is this machine").toBe(401);
  }
});
