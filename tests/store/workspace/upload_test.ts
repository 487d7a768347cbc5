import { expect } from "../../helpers/expect.ts";
import { bodyOf, bytes, path, refusal, testBoth, until } from "./fixture.ts";
import type { Bytes } from "../../../store/workspace/types.ts";

const MODE = 0o7777;
const OPTIONS = { maxBytes: 1 << 30, fromOutside: false };

/** A body that gives `first` and then nothing, until it is told. */
function stalling(first: Bytes): { body: ReadableStream<Bytes>; fail(): void; end(): void } {
  let controller: ReadableStreamDefaultController<Bytes> | undefined;
  const body = new ReadableStream<Bytes>({
    start(given) {
      controller = given;
      given.enqueue(first);
    },
  });
  return {
    body,
    fail: () => controller?.error(new Deno.errors.BadResource("gone")),
    end: () => controller?.close(),
  };
}

async function drain(body: ReadableStream<Bytes>): Promise<number> {
  let total = 0;
  for await (const chunk of body) total += chunk.length;
  return total;
}

testBoth(
  "an upload makes parents and a 0644 file, and says whether it is new (SYS-FS-01)",
  async ({ put, read, at, staged }) => {
    expect((await put("a/b/c.txt", "one")).created).toBe(true);
    expect((await Deno.stat(at("a/b/c.txt"))).mode ?? 0 & MODE).toBe(0o100644);
    expect((await put("a/b/c.txt", "two")).created).toBe(false);
    expect(await read("a/b/c.txt")).toBe("two");
    expect(staged()).toEqual([]);
  },
);

testBoth("an upload keeps the mode of the file it replaces, but no set-id bit", async ({ put, at }) => {
  await put("run.sh", "one");
  await Deno.chmod(at("run.sh"), 0o6751);
  await put("run.sh", "two");
  expect(((await Deno.stat(at("run.sh"))).mode ?? 0) & MODE).toBe(0o751);
});

testBoth("receive() takes any length, declared or not", async ({ store, workspace, at }) => {
  for (const size of [0, 1, 65_535, 65_536, 65_537, 100_000, 3_000_000]) {
    for (const declared of [true, false]) {
      const part = new Uint8Array(10_000).fill(7);
      const chunks = Array.from({ length: Math.ceil(size / 10_000) }, (_, index) => {
        return part.slice(0, Math.min(10_000, size - index * 10_000));
      });
      const options = declared ? { ...OPTIONS, declaredBytes: size } : OPTIONS;
      const upload = await store.beginUpload(workspace, path("x"), options);
      expect(await upload.receive(size === 0 ? null : bodyOf(...chunks)), `${size} ${declared}`).toBe(size);
      await upload.commit();
      const written = await Deno.readFile(at("x"));
      expect(written.length).toBe(size);
      expect(written.every((byte) => byte === 7)).toBe(true);
    }
  }
});

testBoth(
  "a torn upload leaves old bytes, tag and mtime, and nothing in staging (report 10)",
  async ({ store, workspace, put, read, staged }) => {
    await put("good", "good bytes");
    const before = await store.stat(workspace, path("good"));
    for (const declaredBytes of [100, 100_000, undefined]) {
      const options = declaredBytes === undefined ? OPTIONS : { ...OPTIONS, declaredBytes };
      const broken = stalling(new Uint8Array(40));
      const upload = await store.beginUpload(workspace, path("good"), options);
      const received = refusal(() => upload.receive(broken.body));
      broken.fail();
      expect(await received).toBe("invalid_request");
      await upload.abort();
      if (declaredBytes === undefined) continue;
      const short = await store.beginUpload(workspace, path("good"), options);
      expect(await refusal(() => short.receive(bodyOf(new Uint8Array(40))))).toBe("invalid_request");
      const long = await store.beginUpload(workspace, path("good"), options);
      expect(await refusal(() => long.receive(bodyOf(new Uint8Array(declaredBytes + 1))))).toBe(
        "invalid_request",
      );
    }
    expect(await store.stat(workspace, path("good"))).toEqual(before);
    expect(await read("good")).toBe("good bytes");
    expect(staged()).toEqual([]);
  },
);

testBoth(
  "a body over the limit is too_large and can still be read to its end (report 11)",
  async ({ store, workspace, at, staged }) => {
    const begin = () =>
      store.beginUpload(workspace, path("x"), { ...OPTIONS, maxBytes: 1000, declaredBytes: 1001 });
    expect(await refusal(begin)).toBe("too_large");
    for (const [maxBytes, chunk] of [[1000, 600], [200_000, 90_000]] as const) {
      const upload = await store.beginUpload(workspace, path("x"), { ...OPTIONS, maxBytes });
      const body = bodyOf(...Array.from({ length: 6 }, () => new Uint8Array(chunk)));
      expect(await refusal(() => upload.receive(body))).toBe("too_large");
      expect(body.locked).toBe(false);
      expect(await drain(body)).toBeLessThan(chunk * 6);
      await upload.abort();
    }
    expect(await refusal(() => store.stat(workspace, path("x")))).toBe("not_found");
    expect(staged()).toEqual([]);
    await Deno.stat(at("."));
  },
);

testBoth(
  "an endless body is stopped soon after the limit, by its growth on disk",
  async ({ store, workspace }) => {
    let given = 0;
    const body = new ReadableStream<Bytes>({
      async pull(controller) {
        // As fast as a network, not as fast as memory.
        await new Promise((resolve) => setTimeout(resolve, 1));
        given += 100_000;
        controller.enqueue(new Uint8Array(100_000));
      },
    });
    const upload = await store.beginUpload(workspace, path("x"), { ...OPTIONS, maxBytes: 1_000_000 });
    expect(await refusal(() => upload.receive(body))).toBe("too_large");
    expect(body.locked).toBe(false);
    expect(given).toBeLessThan(100_000_000);
    await body.cancel();
  },
);

testBoth(
  "a body that stands still is request_timeout, not cancelled",
  async ({ store, workspace, staged }) => {
    for (
      const [declaredBytes, first] of [[100, 40], [undefined, 40], [500_000, 100_000], [undefined, 100_000]]
    ) {
      const options = declaredBytes === undefined ? OPTIONS : { ...OPTIONS, declaredBytes };
      const upload = await store.beginUpload(workspace, path("x"), options);
      const { body, end } = stalling(new Uint8Array(first ?? 0));
      expect(await refusal(() => upload.receive(body))).toBe("request_timeout");
      expect(body.locked).toBe(false);
      end();
      await drain(body);
    }
    expect(staged()).toEqual([]);
  },
  { idleTimeoutMs: 60 },
);

testBoth(
  "abort() ends an upload in every state, also while it receives, and twice",
  async ({ store, workspace, staged }) => {
    for (const first of [40, 100_000]) {
      const upload = await store.beginUpload(workspace, path("x"), OPTIONS);
      const { body } = stalling(new Uint8Array(first));
      const received = refusal(() => upload.receive(body));
      await until(() => body.locked, "the body to be read");
      await upload.abort();
      expect(await received).toBe("invalid_request");
      expect(body.locked).toBe(false);
      await upload.abort();
    }
    const idle = await store.beginUpload(workspace, path("x"), OPTIONS);
    await idle.abort();
    const ready = await store.beginUpload(workspace, path("x"), OPTIONS);
    await ready.receive(bodyOf(bytes("x")));
    await ready.abort();
    await expect(ready.commit()).rejects.toThrow(TypeError);
    expect(staged()).toEqual([]);
    expect(await refusal(() => store.stat(workspace, path("x")))).toBe("not_found");
  },
);

testBoth(
  "beginUpload() refuses before a byte lands what it can see is wrong",
  async ({ store, workspace, put, at, staged }) => {
    await put("file", "x");
    await Deno.mkdir(at("folder"));
    const rows: [string, string][] = [
      ["", "is_directory"],
      ["folder", "is_directory"],
      ["file/x", "parent_is_file"],
      ["file/x/y/z", "parent_is_file"],
    ];
    for (const [relative, reason] of rows) {
      expect(await refusal(() => store.beginUpload(workspace, path(relative), OPTIONS)), relative).toBe(
        reason,
      );
    }
    expect(staged()).toEqual([]);
  },
);

testBoth(
  "a refused PUT leaves the disk as it was: no parents, no staging file",
  async ({ store, workspace, put, at, staged }) => {
    expect(await refusal(() => put("a/b/c", "x", { conditions: { ifMatch: "*" } }))).toBe(
      "precondition_failed",
    );
    const late = () => {
      throw new TypeError("spent meanwhile");
    };
    await expect(put("a/b/c", "x", { beforeVisible: late })).rejects.toThrow("spent meanwhile");
    expect([...Deno.readDirSync(at("."))].map((entry) => entry.name)).toEqual([".string"]);
    expect(staged()).toEqual([]);
    await put("d/e", "old");
    const before = await store.stat(workspace, path("d/e"));
    await expect(put("d/e", "new", { beforeVisible: late })).rejects.toThrow("spent meanwhile");
    expect(await store.stat(workspace, path("d/e"))).toEqual(before);
  },
);

testBoth(
  "beforeVisible() runs before the new bytes can be seen, and only when all else holds",
  async ({ put, read, at }) => {
    await put("x", "old");
    const seen: string[] = [];
    await put("x", "new", { beforeVisible: async () => void seen.push(await read("x")) });
    expect(seen).toEqual(["old"]);
    await Deno.mkdir(at("folder"));
    const refused = [
      () =>
        put("x", "z", { conditions: { ifNoneMatch: "*" }, beforeVisible: () => void seen.push("called") }),
      () => put("folder", "z", { beforeVisible: () => void seen.push("called") }),
    ];
    for (const attempt of refused) await refusal(attempt);
    expect(seen).toEqual(["old"]);
  },
);

testBoth(
  "If-None-Match: * loses nothing to a creator who comes at the last moment (SYS-FS-05)",
  async ({ put, at }) => {
    const beforeVisible = () => Deno.writeTextFile(at("x"), "the agent's own");
    const attempt = () => put("x", "late", { conditions: { ifNoneMatch: "*" }, beforeVisible });
    expect(await refusal(attempt)).toBe("precondition_failed");
    expect(await Deno.readTextFile(at("x"))).toBe("the agent's own");
  },
);

testBoth("of many creators of one path exactly one wins (SYS-FS-05)", async ({ put, read }) => {
  const attempts = Array.from({ length: 20 }, (_, index) => {
    return refusal(() => put("a/x", `body ${index}`, { conditions: { ifNoneMatch: "*" } }));
  });
  const outcomes = await Promise.all(attempts);
  expect(outcomes.filter((outcome) => outcome === "accepted").length).toBe(1);
  expect(outcomes.filter((outcome) => outcome === "precondition_failed").length).toBe(19);
  expect(await read("a/x")).toBe(`body ${outcomes.indexOf("accepted")}`);
});

testBoth(
  "commit() makes parents again that vanish before the file is in place",
  async ({ put, read, at }) => {
    const beforeVisible = () => Deno.remove(at("a"), { recursive: true });
    await put("a/b/c", "x", { beforeVisible });
    expect(await read("a/b/c")).toBe("x");
  },
);

testBoth(
  "commit() is unavailable where its staging file was taken away",
  async ({ put, at, staged, store, workspace }) => {
    const beforeVisible = () => {
      for (const name of staged()) Deno.removeSync(at(`.string/staging/${name}`));
    };
    expect(await refusal(() => put("x", "x", { beforeVisible }))).toBe("unavailable");
    expect(await refusal(() => store.stat(workspace, path("x")))).toBe("not_found");
  },
);

testBoth("concurrent readers see the old or the new, whole", async ({ put, read }) => {
  for (const size of [5_000, 150_000]) {
    const contents = ["a", "b"].map((letter) => letter.repeat(size));
    await put("x", contents[0] ?? "");
    let writing = true;
    const writer = (async () => {
      for (let round = 0; round < 20; round++) await put("x", contents[round % 2] ?? "");
      writing = false;
    })();
    const readers = Array.from({ length: 4 }, async () => {
      while (writing) {
        expect(contents.includes(await read("x"))).toBe(true);
        // Reads from memory never leave this turn of the loop by themselves.
        await new Promise((resolve) => setTimeout(resolve));
      }
    });
    await Promise.all([writer, ...readers]);
  }
});

testBoth(
  "a PUT below the disk's reserve is disk_full before a byte lands",
  async ({ store, workspace, another, staged }) => {
    const full = another({ diskReserveBytes: Number.MAX_SAFE_INTEGER });
    expect(await refusal(() => full.beginUpload(workspace, path("a/x"), OPTIONS))).toBe("disk_full");
    const coming = { ...OPTIONS, maxBytes: 2 ** 60, declaredBytes: 2 ** 59 };
    expect(await refusal(() => store.beginUpload(workspace, path("a/x"), coming))).toBe("disk_full");
    expect(staged()).toEqual([]);
  },
);

testBoth("an upload into a home that was removed makes it again", async ({ put, read, home }) => {
  await Deno.remove(home, { recursive: true });
  await put("a/x", "x");
  expect(await read("a/x")).toBe("x");
});

testBoth("of many writers that know one version exactly one wins (report 16)", async ({ put, read }) => {
  const { version } = await put("x", "first");
  const attempts = Array.from({ length: 20 }, (_, index) => {
    const beforeVisible = () => new Promise<void>((resolve) => setTimeout(resolve));
    return refusal(() =>
      put("x", `body ${index}`, { conditions: { ifMatch: [version.etag] }, beforeVisible })
    );
  });
  const outcomes = await Promise.all(attempts);
  expect(outcomes.filter((outcome) => outcome === "accepted").length).toBe(1);
  expect(await read("x")).toBe(`body ${outcomes.indexOf("accepted")}`);
});
