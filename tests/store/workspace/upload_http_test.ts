/** Uploads whose bodies come over a real connection: what a client does wrong differs by version of the runtime. */
import { AppError } from "../../../base/errors.ts";
import { expect } from "../../helpers/expect.ts";
import { bytes, type Fixture, openDescriptors, path, refusal, testBoth, until } from "./fixture.ts";

interface Outcome {
  code: string;
  received: number;
  drained: number;
}

/** Serves uploads to `x` that allow 1 MiB, and drains what is refused. */
function serve({ store, workspace }: Fixture, outcomes: Outcome[]): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ port: 0, onListen() {} }, async (request) => {
    const outcome = { code: "accepted", received: 0, drained: 0 };
    const length = request.headers.get("content-length");
    const upload = await store.beginUpload(workspace, path("x"), {
      maxBytes: 1 << 20,
      fromOutside: true,
      ...(length === null ? {} : { declaredBytes: Number(length) }),
    });
    try {
      outcome.received = await upload.receive(request.body);
      await upload.commit();
    } catch (error) {
      await upload.abort();
      outcome.code = error instanceof AppError ? error.code : String(error);
      try {
        for await (const chunk of request.body ?? []) outcome.drained += chunk.length;
      } catch {
        outcome.drained = -1; // the client is gone
      }
    }
    outcomes.push(outcome);
    return Response.json(outcome);
  });
}

function pieces(count: number, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let given = 0;
  return new ReadableStream({
    pull(controller) {
      if (given++ < count) controller.enqueue(new Uint8Array(size).fill(given % 251));
      else controller.close();
    },
  });
}

testBoth("a chunked body of any pieces arrives whole", async (fixture) => {
  const outcomes: Outcome[] = [];
  const server = serve(fixture, outcomes);
  const url = `http://127.0.0.1:${server.addr.port}/`;
  try {
    for (
      const [count, size] of [[0, 1], [1, 1], [7, 10_000], [1000, 1], [3, 300_000], [1, 1 << 20], [
        1025,
        1023,
      ]]
    ) {
      if (count === undefined || size === undefined) throw new TypeError("a row is short");
      const response = await fetch(url, { method: "PUT", body: pieces(count, size) });
      expect(await response.json()).toEqual({ code: "accepted", received: count * size, drained: 0 });
      const written = await Deno.readFile(fixture.at("x"));
      expect(written.length).toBe(count * size);
      expect(written.every((byte, index) => byte === (Math.floor(index / size) + 1) % 251)).toBe(true);
    }
  } finally {
    await server.shutdown();
  }
});

testBoth(
  "a chunked body over the limit is refused and drained, and the client reads why (report 11)",
  async (fixture) => {
    const outcomes: Outcome[] = [];
    const server = serve(fixture, outcomes);
    try {
      const url = `http://127.0.0.1:${server.addr.port}/`;
      const response = await fetch(url, { method: "PUT", body: pieces(100, 100_000) });
      const outcome = await response.json();
      expect(outcome.code).toBe("too_large");
      expect(outcome.drained).toBeGreaterThan(5_000_000);
    } finally {
      await server.shutdown();
    }
  },
);

/** Sends the head of a PUT and some bytes, and leaves the connection to the caller. */
async function begin(
  server: Deno.HttpServer<Deno.NetAddr>,
  length: number,
  sent: number,
): Promise<Deno.Conn> {
  const connection = await Deno.connect({ port: server.addr.port });
  const head = `PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
  const all = new Uint8Array([...bytes(head), ...new Uint8Array(sent)]);
  for (let written = 0; written < all.length;) written += await connection.write(all.subarray(written));
  return connection;
}

testBoth(
  "a client that goes away in the middle leaves the old file and nothing open (report 10)",
  async (fixture) => {
    const { store, workspace, put, read, staged } = fixture;
    await put("x", "good bytes");
    const before = await store.stat(workspace, path("x"));
    const outcomes: Outcome[] = [];
    const server = serve(fixture, outcomes);
    const descriptors = openDescriptors();
    try {
      for (const [length, sent] of [[100_000, 40_000], [900_000, 600_000], [10_000, 4000]] as const) {
        const expected = outcomes.length + 1;
        const connection = await begin(server, length, sent);
        await until(() => staged().length === 1, "the upload to begin");
        connection.close();
        await until(() => outcomes.length === expected, "the upload to fail");
        expect(outcomes.at(-1)?.code).toBe("invalid_request");
      }
    } finally {
      await server.shutdown();
    }
    expect(await store.stat(workspace, path("x"))).toEqual(before);
    expect(await read("x")).toBe("good bytes");
    expect(staged()).toEqual([]);
    await until(() => openDescriptors() <= descriptors, "descriptors to close");
  },
);

testBoth("a client that stalls is refused, and its rest can still be drained", async (fixture) => {
  const outcomes: Outcome[] = [];
  const server = serve(fixture, outcomes);
  try {
    for (const sent of [100, 300_000]) {
      const connection = await begin(server, 1_000_000, sent);
      await until(() => fixture.staged().length === 1, "the upload to begin");
      await until(() => fixture.staged().length === 0, "the upload to be given up");
      const rest = new Uint8Array(1_000_000 - sent);
      for (let written = 0; written < rest.length;) written += await connection.write(rest.subarray(written));
      const answer = new Uint8Array(4096);
      const count = await connection.read(answer) ?? 0;
      expect(new TextDecoder().decode(answer.subarray(0, count))).toContain("request_timeout");
      connection.close();
      expect(outcomes.at(-1)?.drained).toBe(1_000_000 - sent);
    }
  } finally {
    await server.shutdown();
  }
  expect(await refusal(() => fixture.store.stat(fixture.workspace, path("x")))).toBe("not_found");
}, { idleTimeoutMs: 100 });
