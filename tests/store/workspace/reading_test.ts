import { expect } from "../../helpers/expect.ts";
import { bytes, openDescriptors, path, refusal, testBoth, until } from "./fixture.ts";

const LARGE = 300_000;

/** Not by toEqual: that walks hundreds of thousands of elements one by one. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function pattern(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + seed) % 251);
}

testBoth(
  "stat() and open() refuse what is no file, each with its reason",
  async ({ store, workspace, put, at }) => {
    await put("in/a.txt", "a");
    await Deno.mkdir(at("in/folder"));
    const rows: [string, string][] = [
      ["", "is_directory"],
      ["in", "is_directory"],
      ["in/folder", "is_directory"],
      ["in/a.txt/x", "parent_is_file"],
      ["in/a.txt/x/y", "parent_is_file"],
      ["nope", "not_found"],
      ["in/nope/x", "not_found"],
      [`in/${"n".repeat(255)}`, "not_found"],
    ];
    for (const [relative, reason] of rows) {
      expect(await refusal(() => store.stat(workspace, path(relative))), relative).toBe(reason);
      expect(await refusal(() => store.open(workspace, path(relative))), relative).toBe(reason);
    }
  },
);

testBoth("stat() answers not_found where the home is missing", async ({ store, workspace }) => {
  const gone = { ...workspace, home: `${workspace.home}-gone` };
  expect(await refusal(() => store.stat(gone, path("x")))).toBe("not_found");
});

testBoth("open() round-trips names outside ASCII byte for byte (report 14)", async ({ put, read, at }) => {
  const names = [
    "보고서 über 100%.pdf",
    "a+b&c=d.txt",
    "emoji-🧵",
    "n".repeat(255),
    "a\nb",
    " ",
    "-rf",
    "%2e%2e",
  ];
  for (const name of names) {
    const result = path(name);
    await put(result, name);
    expect(await read(result)).toBe(name);
    expect(await Deno.readTextFile(at(result))).toBe(name);
  }
});

testBoth(
  "open() gives a small file as bytes and a large one as a stream",
  async ({ store, workspace, put }) => {
    await put("small", pattern(65_536, 1));
    await put("large", pattern(65_537, 1));
    await put("empty", "");
    const small = await store.open(workspace, path("small"));
    expect(isSame(small.bytes ?? bytes(""), pattern(65_536, 1))).toBe(true);
    expect(isSame(await new Response(await small.stream(10, 20)).bytes(), pattern(65_536, 1).slice(10, 30)))
      .toBe(true);
    expect((await store.open(workspace, path("empty"))).bytes).toEqual(bytes(""));
    const large = await store.open(workspace, path("large"));
    expect(large.bytes).toBeUndefined();
    expect(isSame(await new Response(await large.stream(0, 65_537)).bytes(), pattern(65_537, 1))).toBe(true);
  },
);

testBoth(
  "open() answers without a promise once a settled file was read",
  async ({ store, workspace, put, containment }) => {
    await put("a", "aaaa");
    const first = await store.open(workspace, path("a"));
    // A file that has just changed is not kept: wait until its times can be told from a next change's.
    await until(
      () => store.open(workspace, path("a")) === store.open(workspace, path("a")),
      "a kept content",
    );
    const second = store.open(workspace, path("a"));
    expect(second).not.toBeInstanceOf(Promise);
    expect(await second).toMatchObject({ version: first.version });
    if (containment === "kernel") expect(first).not.toBeInstanceOf(Promise);
    const before = openDescriptors();
    for (let count = 0; count < 20; count++) await store.open(workspace, path("a"));
    expect(openDescriptors()).toBe(before);
  },
);

testBoth(
  "open() never gives a kept content for a changed file",
  async ({ store, workspace, put, read, at }) => {
    await put("a", "aaaa");
    await until(
      () => store.open(workspace, path("a")) === store.open(workspace, path("a")),
      "a kept content",
    );
    await put("a", "bbbb");
    expect(await read("a")).toBe("bbbb");
    await until(
      () => store.open(workspace, path("a")) === store.open(workspace, path("a")),
      "a kept content",
    );
    const kept = store.stat(workspace, path("a"));
    // In place, same size, and the old time put back: only the time of the inode's own change tells.
    const before = await Deno.stat(at("a"));
    await Deno.writeTextFile(at("a"), "cccc");
    await Deno.utime(at("a"), before.mtime ?? 0, before.mtime ?? 0);
    expect(await read("a")).toBe("cccc");
    expect((await store.stat(workspace, path("a"))).etag).not.toBe((await kept).etag);
  },
);

testBoth(
  "stream() starts where it is told and leaves no descriptor open",
  async ({ store, workspace, put }) => {
    await put("large", pattern(LARGE, 3));
    await store.stat(workspace, path("large"));
    const before = openDescriptors();
    for (const start of [0, 1, 100_000, LARGE - 1]) {
      const file = await store.open(workspace, path("large"));
      const all = await new Response(await file.stream(start, LARGE - start)).bytes();
      expect(isSame(all, pattern(LARGE, 3).slice(start))).toBe(true);
      file.close();
    }
    const cancelled = await store.open(workspace, path("large"));
    await (await cancelled.stream(0, LARGE)).cancel();
    const closed = await store.open(workspace, path("large"));
    closed.close();
    closed.close();
    const none = await store.open(workspace, path("large"));
    expect(await new Response(await none.stream(5, 0)).text()).toBe("");
    expect(openDescriptors()).toBe(before);
  },
);

testBoth("stream() gives exactly the range that is asked for", async ({ store, workspace, put }) => {
  await put("large", pattern(LARGE, 3));
  const before = openDescriptors();
  for (
    const [start, length] of [[0, 1], [0, LARGE - 1], [65_535, 65_537], [299_000, 999], [299_999, 1]] as const
  ) {
    const file = await store.open(workspace, path("large"));
    const part = await new Response(await file.stream(start, length)).bytes();
    expect(isSame(part, pattern(LARGE, 3).slice(start, start + length)), `${start}+${length}`).toBe(true);
  }
  const cancelled = (await (await store.open(workspace, path("large"))).stream(5, 200_000)).getReader();
  await cancelled.read();
  await cancelled.cancel();
  expect(openDescriptors()).toBe(before);
});

testBoth(
  "stream() behind a server cuts a range, and no client's leaving keeps a file open",
  async ({ store, workspace, put }) => {
    await put("large", pattern(2_000_000, 5));
    const server = Deno.serve({ port: 0, onListen() {} }, async (request) => {
      const [start = 0, length = 0] = (request.headers.get("x-part") ?? "").split("+").map(Number);
      const file = await store.open(workspace, path("large"));
      return new Response(await file.stream(start, length), {
        headers: { "content-length": String(length) },
      });
    });
    const url = `http://127.0.0.1:${server.addr.port}/`;
    const client = Deno.createHttpClient({ poolMaxIdlePerHost: 1 });
    try {
      const get = (part: string, signal?: AbortSignal) =>
        fetch(url, { client, headers: { "x-part": part }, ...(signal === undefined ? {} : { signal }) });
      await (await get("0+10")).bytes();
      const before = openDescriptors();
      const expected = pattern(2_000_000, 5).slice(7, 100_007);
      for (let round = 0; round < 10; round++) {
        expect(isSame(await (await get("7+100000")).bytes(), expected)).toBe(true);
      }
      for (let round = 0; round < 10; round++) {
        const gone = new AbortController();
        const response = await get("0+2000000", gone.signal);
        gone.abort();
        await response.body?.cancel().catch(() => {/* aborted, as intended */});
      }
      await until(() => openDescriptors() <= before + 2, "the descriptors of lost clients to close");
    } finally {
      client.close();
      await server.shutdown();
    }
  },
);

testBoth(
  "a file that shrinks under its reader ends only that answer (report 40)",
  async ({ store, workspace, put, at }) => {
    const length = 8_000_000;
    await put("large", pattern(length, 5));
    await put("other", pattern(length, 6));
    const server = Deno.serve(
      { port: 0, onListen() {}, onError: () => new Response(null, { status: 500 }) },
      async (request) => {
        const file = await store.open(workspace, path(new URL(request.url).pathname));
        return new Response(await file.stream(0, length), { headers: { "content-length": String(length) } });
      },
    );
    const url = `http://127.0.0.1:${server.addr.port}`;
    try {
      const shrinking = await fetch(`${url}/large`);
      const whole = await fetch(`${url}/other`);
      await Deno.truncate(at("large"), 1000);
      const torn = await shrinking.bytes().then((read) => read.length, () => -1);
      expect(torn === length).toBe(false);
      expect((await whole.bytes()).length).toBe(length);
      expect((await (await fetch(`${url}/other`)).bytes()).length).toBe(length);
    } finally {
      await server.shutdown();
    }
  },
);

testBoth(
  "a long read finishes the old bytes while a PUT replaces the file (report 59)",
  async ({ store, workspace, put, read }) => {
    await put("large", pattern(LARGE, 1));
    const file = await store.open(workspace, path("large"));
    const reader = (await file.stream(0, LARGE)).getReader();
    const first = await reader.read();
    await put("large", "new");
    const chunks = [first.value ?? bytes("")];
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
    expect(isSame(await new Blob(chunks).bytes(), pattern(LARGE, 1))).toBe(true);
    expect(await read("large")).toBe("new");
  },
);

testBoth("open() gives no permission that the host does not give", async ({ store, workspace, put, at }) => {
  await put("secret", "s");
  await Deno.chmod(at("secret"), 0);
  // The superuser may read everything; then there is nothing to see here.
  const expected = Deno.uid() === 0 ? "accepted" : "permission_denied";
  expect(await refusal(() => store.open(workspace, path("secret")))).toBe(expected);
});
