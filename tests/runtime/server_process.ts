/**
 * A server in a process of its own for the tests of its life: prints its address, then what happens to it.
 *
 * Argument: the grace period in milliseconds. Routes: `/` answers; `/hold` answers once it has read the body;
 * `/slow` answers after the drain has begun; `/throw`, `/reject` and `/broken` fail in three ways.
 */
import { createLog } from "../../base/log.ts";
import { runServer } from "../../runtime/server.ts";

const encoder = new TextEncoder();
const say = (line: string) => void Deno.stdout.writeSync(encoder.encode(line + "\n"));
const log = createLog({
  level: "debug",
  format: "json",
  write: (line) => say(line.trimEnd()),
  now: Date.now,
});
const draining = Promise.withResolvers<void>();

function brokenBody(): ReadableStream<Uint8Array<ArrayBuffer>> {
  let sent = false;
  return new ReadableStream({
    pull(controller) {
      if (sent) throw new Error("EIO reading /var/lib/private/file of caps_secretsecretsecret");
      sent = true;
      controller.enqueue(encoder.encode("first part"));
    },
  });
}

async function handler(request: Request): Promise<Response> {
  switch (new URL(request.url).pathname) {
    case "/hold":
      return new Response(`read ${(await request.arrayBuffer()).byteLength}`);
    case "/slow":
      say("slow began");
      await draining.promise;
      return new Response("slow answer");
    case "/throw":
      throw new Error("no such file '/var/lib/private/x' for /fs/a?cap=caps_secretsecretsecret");
    case "/reject":
      void Promise.reject(new Error("lost on the way"));
      setTimeout(() => {
        throw new Error("thrown by a timer");
      }, 0);
      return new Response("answered");
    case "/broken":
      return new Response(brokenBody(), { headers: { "content-type": "application/octet-stream" } });
    default:
      return new Response("ok");
  }
}

Deno.exit(
  await runServer({
    handler,
    host: "127.0.0.1",
    port: 0,
    graceMs: Number(Deno.args[0]),
    log,
    onListen: ({ url }) => say(url),
    onDrain: () => {
      say("drain");
      draining.resolve();
    },
  }),
);
