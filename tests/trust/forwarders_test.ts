/** What is passed on by a program of the server's own user, which the kernel cannot tell from a person's curl. */
import { FORWARDING_HEADERS } from "../../runtime/identity.ts";
import { expect } from "../helpers/expect.ts";
import { sendRaw } from "../helpers/raw.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { agentIds, expectRefusal } from "./support.ts";

/** Passes bytes on without looking at them, as a TCP tunnel does. */
function startTunnel(port: number): { port: number } & AsyncDisposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const running: Promise<unknown>[] = [];
  running.push((async () => {
    for await (const near of listener) {
      const far = await Deno.connect({ hostname: "127.0.0.1", port });
      running.push(
        Promise.allSettled([near.readable.pipeTo(far.writable), far.readable.pipeTo(near.writable)]),
      );
    }
  })());
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await Promise.allSettled(running);
    },
  };
}

const BODY = JSON.stringify({ agent_id: "evil" });

function pair(headers: Record<string, string>): string {
  const lines = Object.entries({ connection: "close", "content-length": String(BODY.length), ...headers });
  return `POST /agents HTTP/1.1\r\n${
    lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n${BODY}`;
}

Deno.test("a tunnel that keeps its public Host gets 403 host_not_allowed (SYS-ERR-02)", async () => {
  await using server = await startServer();
  await using tunnel = startTunnel(server.port);
  for (const host of ["public.example", "public.example:443", `127.0.0.1.nip.example:${server.port}`]) {
    expectRefusal(await sendRaw(tunnel.port, pair({ host })), 403, "host_not_allowed", host);
  }
  expect(await agentIds(server)).toEqual([]);
  const valid = pair({ host: "public.example", authorization: `Bearer ${server.adminToken}` });
  expect((await sendRaw(tunnel.port, valid)).status, "a valid token passes whatever its Host").toBe(200);
});

Deno.test("a tunnel of the same user that says nothing of itself is what the banner warns of", async () => {
  await using server = await startServer();
  await using tunnel = startTunnel(server.port);
  const answer = await sendRaw(tunnel.port, pair({ host: "localhost" }));
  const banner = server.context.banner(server.url).join("\n");
  expect(answer.status).toBe(server.context.identity.ambientTrust === "on" ? 200 : 401);
  if (answer.status === 200) expect(banner).toMatch(/proxy or tunnel[^]*same user[^]*--trust-loopback=false/);
});

async function refusesForwarded(server: TestServer, header: string, value: string): Promise<void> {
  const answer = await sendRaw(server.port, pair({ host: `127.0.0.1:${server.port}`, [header]: value }));
  expectRefusal(answer, 401, "admin_required", `${header}: ${value}`);
}

Deno.test("a forward that says so gets 401, whatever its header is worth", async () => {
  await using server = await startServer();
  const common = [
    "Forwarded",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
  ];
  for (const name of new Set([...common, "X-CLIENT-IP", ...FORWARDING_HEADERS])) {
    for (const value of ["127.0.0.1", "for=127.0.0.1", ""]) await refusesForwarded(server, name, value);
  }
  expect(await agentIds(server)).toEqual([]);
});

Deno.test("a trusted hop does not make a forwarded request the operator's", async () => {
  await using server = await startServer({ flags: { trustedHops: "1" } });
  await refusesForwarded(server, "X-Forwarded-For", "127.0.0.1");
});
