/** A reverse proxy on the same machine, under a user of its own, that adds nothing to what it passes on. */
import { join } from "../../base/std.ts";
import { type Answer, ask } from "../helpers/api.ts";
import { until } from "../helpers/deadline.ts";
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { canRun } from "../helpers/tools.ts";
import { agentIds, expectRefusal, NEEDS_OTHER_USERS, NOBODY, nobodyCanRun } from "./support.ts";

const READY = await nobodyCanRun("nginx", "-v");
const WHY = NEEDS_OTHER_USERS;
/** The group of the user nobody has two names. */
const GROUP = await canRun("grep", "-q", "^nogroup:", "/etc/group") ? "nogroup" : "nobody";

/** A bare `proxy_pass`, and the same with each way of writing `Host` and of keeping connections. */
const PROXIES = {
  bare: "",
  "with a public Host": "proxy_set_header Host public.example;",
  "that keeps the client's Host": "proxy_set_header Host $http_host;",
  "over kept connections":
    'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host localhost;',
};

interface Proxy extends AsyncDisposable {
  readonly url: string;
}

/** Starts nginx in front of a server, all of it as `NOBODY`, or its workers alone. */
async function startNginx(server: TestServer, extra: string, wholeAsNobody: boolean): Promise<Proxy> {
  const folder = await Deno.makeTempDir();
  await Deno.chown(folder, NOBODY, NOBODY);
  const socket = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = socket.addr;
  socket.close();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(folder, name)};`).join(" ");
  await Deno.writeTextFile(
    join(folder, "nginx.conf"),
    `${wholeAsNobody ? "" : `user nobody ${GROUP};`} daemon off; pid ${
      join(folder, "pid")
    }; error_log stderr crit;
    events {}
    http {
      access_log off; ${temporary}
      upstream string { server 127.0.0.1:${server.port}; keepalive 4; }
      server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${server.port}; ${extra} } }
      server { listen 127.0.0.2:${port}; location / { proxy_pass http://string; ${extra} } }
    }`,
  );
  const child = new Deno.Command("nginx", {
    args: ["-c", join(folder, "nginx.conf"), "-p", folder, "-e", "stderr"],
    ...(wholeAsNobody ? { uid: NOBODY, gid: NOBODY } : {}),
    cwd: "/",
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const url = `http://127.0.0.${extra.includes("Connection") ? 2 : 1}:${port}`;
  await until("nginx answers", () => ask(`${url}/health`).then(({ status }) => status === 200, () => false));
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function expectNothing(proxy: Proxy, expected: { status: number; reason: string }): Promise<void> {
  const requests: [string, string, string?][] = [
    ["GET", "/agents"],
    ["GET", "/capabilities"],
    ["GET", "/events"],
    ["POST", "/agents", '{"agent_id":"evil"}'],
    ["DELETE", "/agents/eve"],
  ];
  for (const [method, path, body] of requests) {
    const init = { method, headers: { "x-agent-id": "eve" }, ...(body === undefined ? {} : { body }) };
    const { status, text } = await ask(proxy.url + path, init);
    expectRefusal({ status, body: text }, expected.status, expected.reason, `${method} ${path}`);
  }
}

for (const [name, extra] of Object.entries(PROXIES)) {
  testIf(
    READY,
    WHY,
    `a reverse proxy under another user, ${name}, is nobody without a token (real nginx)`,
    async (t) => {
      for (const wholeAsNobody of [true, false]) {
        await t.step(wholeAsNobody ? "all of it as nobody" : "its workers as nobody", async () => {
          await using server = await startServer();
          await server.admin("POST", "/agents", { agent_id: "eve" });
          await using proxy = await startNginx(server, extra, wholeAsNobody);
          const foreignHost = extra.includes("public.example");
          await expectNothing(
            proxy,
            foreignHost
              ? { status: 403, reason: "host_not_allowed" }
              : { status: 401, reason: "admin_required" },
          );
          expect(await agentIds(server)).toEqual(["eve"]);
          const withToken = (path: string): Promise<Answer> =>
            ask(proxy.url + path, { headers: { authorization: `Bearer ${server.adminToken}` } });
          expect([(await withToken("/agents")).status, (await withToken("/capabilities")).status]).toEqual([
            200,
            200,
          ]);
          await expectNothing(
            proxy,
            foreignHost
              ? { status: 403, reason: "host_not_allowed" }
              : { status: 401, reason: "admin_required" },
          );
        });
      }
    },
  );
}
