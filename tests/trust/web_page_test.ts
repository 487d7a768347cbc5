/**
 * A page in a real browser on this machine, whose user is the server's own: what it tries must come to nothing.
 *
 * Twice: from another port of 127.0.0.1, and from a name that was made to point here (the browser then takes the
 * server for the page's own origin). Report 49.
 */
import { expect } from "../helpers/expect.ts";
import { startServer, type TestServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import { BROWSER, NO_BROWSER, openPage } from "../reports/browser.ts";
import { agentIds } from "./support.ts";

/** A page that tries each way to reach `target` and notes in its title what it could read. */
function attackOn(target: string): string {
  return `<!doctype html><title></title><body><pre id=log></pre><iframe name=sink></iframe><script>
const target = ${JSON.stringify(target)};
const note = (what, text) => document.getElementById("log").append(what + " => " + text + "\\n");
const tell = (what, work) => work.then((text) => note(what, "READ " + text), (error) => note(what, "refused " + error.name));
const read = async (response) => response.status + " " + await Promise.race([
  response.text(), new Promise((_, late) => setTimeout(() => late(new Error("late")), 1000))]);
const evil = (id) => JSON.stringify({ agent_id: id });
(async () => {
  for (const path of ["/agents", "/capabilities", "/events/stream", "/describe"]) {
    for (const mode of ["cors", "no-cors", "same-origin"]) {
      await tell(mode + " " + path, fetch(target + path, { mode }).then(read));
    }
    await tell("credentials " + path, fetch(target + path, { credentials: "include" }).then(read));
    await tell("image " + path, new Promise((done, fail) => {
      const image = new Image();
      image.onload = () => done("an image");
      image.onerror = () => fail(new Error());
      image.src = target + path;
    }));
  }
  for (const mode of ["cors", "no-cors"]) {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
      const init = { method: "POST", mode, headers: { "content-type": type }, body: evil("evil-fetch") };
      await tell(mode + " post " + type, fetch(target + "/agents", init).then(read));
    }
  }
  await tell("delete", fetch(target + "/agents/eve", { method: "DELETE" }).then(read));
  await tell("x-agent-id", fetch(target + "/events", { headers: { "x-agent-id": "eve" } }).then(read));
  navigator.sendBeacon(target + "/agents", evil("evil-beacon"));
  await tell("event source", new Promise((done, fail) => {
    const source = new EventSource(target + "/events/stream");
    source.onmessage = source.onopen = () => done("open");
    source.onerror = () => fail(new Error());
  }));
  for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
    const form = Object.assign(document.createElement("form"), { method: "post", action: target + "/agents", enctype, target: "sink" });
    // With text/plain the name, an equals sign and the value together are a JSON object.
    form.append(Object.assign(document.createElement("input"), { name: '{"agent_id":"evil-form","webhook":false,"x":"', value: '"}' }));
    document.body.append(form);
    form.submit();
    await new Promise((later) => setTimeout(later, 300));
  }
  note("done", "all");
})();
</script>`;
}

interface Front extends AsyncDisposable {
  readonly port: number;
}

/**
 * Serves the page at `/page`; every other connection is passed on byte for byte to the port `passOnTo`, as it goes once a
 * name points to another address.
 */
function startFront(page: (port: number) => string, passOnTo?: number): Front {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const running: Promise<unknown>[] = [];
  const handle = async (near: Deno.Conn) => {
    const buffer = new Uint8Array(65_536);
    const count = await near.read(buffer) ?? 0;
    const line = new TextDecoder().decode(buffer.subarray(0, count)).split("\r\n")[0] ?? "";
    const path = line.split(" ")[1] ?? "";
    if (path !== "/page" && passOnTo !== undefined) {
      const far = await Deno.connect({ hostname: "127.0.0.1", port: passOnTo });
      await far.write(buffer.subarray(0, count));
      await Promise.allSettled([near.readable.pipeTo(far.writable), far.readable.pipeTo(near.writable)]);
      return;
    }
    const body = page(port);
    await near.write(new TextEncoder().encode(
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n" +
        `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ));
    near.close();
  };
  running.push((async () => {
    for await (const near of listener) running.push(handle(near).catch(() => {})); // the browser may hang up at any time
  })());
  return {
    port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await Promise.allSettled(running);
    },
  };
}

/** Returns what the page noted, one line per try. Fails when it did not come to its end. */
async function attack(url: string, flags: string[] = []): Promise<string[]> {
  const dom = await openPage(url, ["--virtual-time-budget=15000", ...flags]);
  const lines = (/<pre id="log">([^]*?)<\/pre>/.exec(dom)?.[1] ?? "").replaceAll("&gt;", ">").split("\n");
  expect(lines, dom.slice(0, 500)).toContain("done => all");
  return lines;
}

async function expectUntouched(server: TestServer, notes: string[]): Promise<void> {
  expect(notes.filter((line) => /"eve"|\{"agents"|"capabilities":\[|READ open|READ an image/.test(line)))
    .toEqual(
      [],
    );
  expect(await agentIds(server)).toEqual(["eve"]);
}

testIf(
  BROWSER !== undefined,
  NO_BROWSER,
  "a page of another port reads nothing and makes nothing (report 49)",
  async () => {
    await using server = await startServer();
    await server.admin("POST", "/agents", { agent_id: "eve" });
    await using front = startFront(() => attackOn(server.url));
    const notes = await attack(`http://127.0.0.1:${front.port}/page`);
    await expectUntouched(server, notes);
    const read = notes.filter((line) => line.includes("=> READ") && !line.startsWith("no-cors"));
    expect(read, "what is opaque may be called, not read").toEqual([]);
  },
);

testIf(
  BROWSER !== undefined,
  NO_BROWSER,
  "a page whose name points here reads refusals alone (report 49)",
  async () => {
    await using server = await startServer();
    await server.admin("POST", "/agents", { agent_id: "eve" });
    await using front = startFront((port) => attackOn(`http://evil.example:${port}`), server.port);
    const rebound = ["--host-resolver-rules=MAP evil.example 127.0.0.1"];
    const notes = await attack(`http://evil.example:${front.port}/page`, rebound);
    await expectUntouched(server, notes);
    // The page could read these answers, as it would read agents: the browser takes them for its own.
    expect(notes.join("\n")).toContain("same-origin /agents => READ 403");
    expect(notes.join("\n")).toContain("cors post text/plain => READ 403");
    expect(notes.join("\n")).toMatch(/^cors \/describe => READ 200 .*string-daemon/m);
  },
);

testIf(
  BROWSER !== undefined,
  NO_BROWSER,
  "the same page reads and makes what a careless server lets it",
  async () => {
    const posted: string[] = [];
    const careless = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      if (request.method === "POST") posted.push(await request.text());
      return new Response('{"agents":["eve"]}', {
        headers: { "access-control-allow-origin": "*", "access-control-allow-headers": "*" },
      });
    });
    await using front = startFront(() => attackOn(`http://127.0.0.1:${careless.addr.port}`));
    const notes = await attack(`http://127.0.0.1:${front.port}/page`);
    await careless.shutdown();
    expect(notes.join("\n")).toContain('cors /agents => READ 200 {"agents":["eve"]}');
    expect(posted.join("\n")).toMatch(/evil-fetch[^]*evil-beacon[^]*evil-form/);
  },
);
