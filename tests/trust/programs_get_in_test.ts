import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { HAS_CURL, NEEDS_CURL, runTool } from "../helpers/tools.ts";
import { agentIds, HAS_NODE, NEEDS_NODE } from "./support.ts";

const isLinux = Deno.build.os === "linux";
const NEEDS_LINUX = "only Linux tells whose a connection is";

/** Where a program of this machine may find the server, by the address that it listens on. */
const ADDRESSES = [
  { listen: "127.0.0.1", dial: "127.0.0.1" },
  { listen: "127.0.0.1", dial: "localhost" },
  { listen: "127.0.0.1", dial: "LOCALHOST" },
  { listen: "127.0.0.1", dial: "[::ffff:127.0.0.1]" },
  { listen: "::1", dial: "[::1]" },
  { listen: "::", dial: "127.0.0.1" },
  { listen: "::", dial: "[::1]" },
  { listen: "0.0.0.0", dial: "127.0.0.1" },
  { listen: "0.0.0.0", dial: "127.8.9.10" },
];

/** Pairs an agent in as few words as each program lets one. */
const PROGRAMS = {
  curl: (
    url: string,
    id: string,
  ) => ["curl", "-sSf", "-X", "POST", `${url}/agents`, "-d", JSON.stringify({ agent_id: id })],
  node: (url: string, id: string) => ["node", "-e", toScript(url, id)],
  deno: (url: string, id: string) => [Deno.execPath(), "eval", toScript(url, id)],
};

function toScript(url: string, id: string): string {
  const init = {
    method: "POST",
    body: JSON.stringify({ agent_id: id }),
    headers: { "content-type": "application/json" },
  };
  return `fetch(${JSON.stringify(`${url}/agents`)}, ${JSON.stringify(init)})` +
    `.then((r) => r.ok ? r.text() : Promise.reject(r.status)).then((text) => console.log(text))`;
}

for (const [name, toCommand] of Object.entries(PROGRAMS)) {
  const there = name === "curl" ? HAS_CURL : name === "node" ? HAS_NODE : true;
  const reason = !isLinux ? NEEDS_LINUX : name === "curl" ? NEEDS_CURL : NEEDS_NODE;
  testIf(
    isLinux && there,
    reason,
    `${name} of the server's own user is the operator without a token`,
    async (t) => {
      for (const { listen, dial } of ADDRESSES) {
        // The others resolve the mapped address themselves; only curl dials it as it is written.
        if (name !== "curl" && (dial.includes("ffff") || dial === "LOCALHOST")) continue;
        await t.step(`at ${dial} of a server on ${listen}`, async () => {
          await using server = await startServer({ flags: { host: listen } });
          const ran = await runTool(toCommand(`http://${dial}:${server.port}`, "eve"));
          expect([ran.code, ran.err]).toEqual([0, ""]);
          expect(await agentIds(server)).toEqual(["eve"]);
        });
      }
    },
  );
}

testIf(isLinux && HAS_CURL, NEEDS_CURL, "many at once get in while connections come and go", async () => {
  await using server = await startServer();
  let stop = false;
  const churn = (async () => {
    while (!stop) await (await server.fetch("/health")).body?.cancel();
  })();
  const one = ["curl", "-sS", "--parallel", "--parallel-immediate", "-w", "%{http_code}\n"];
  const urls = Array.from({ length: 50 }, () => ["-o", "/dev/null", `${server.url}/agents`]).flat();
  const runs = await Promise.all(Array.from({ length: 4 }, () => runTool([...one, ...urls])));
  stop = true;
  await churn;
  expect(runs.flatMap(({ out }) => out.trim().split("\n"))).toEqual(Array(200).fill("200"));
});
