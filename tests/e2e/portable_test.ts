/** The verbs with the portable containment forced: what the kernel does elsewhere, checks of each folder do here. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { expect } from "../helpers/expect.ts";
import { serve } from "../helpers/program.ts";
import { toContent, versionOf } from "../helpers/versions.ts";

for (const containment of ["portable", "auto"]) {
  Deno.test(`the verbs hold with STRING_CONTAINMENT=${containment}`, async () => {
    await using server = await serve({ env: { STRING_CONTAINMENT: containment } });
    const operator = await Operator.of(server);
    await operator.pair();
    const { secret } = await operator.mint();
    const home = join(server.dataFolder, "workspaces/eve");
    const link = (path: string) => toLink(server.url, path, secret);
    const described = (await ask(server.url + "/describe")).body["capabilities"] as {
      fs: { containment: string };
    };
    const expected = containment === "portable" || Deno.build.os !== "linux" ? "portable" : "kernel";
    expect(described.fs.containment).toBe(expected);
    expect(server.out()).toContain(expected === "portable" ? "(portable)" : "by the kernel");

    const first = expectStatus(await put(link("a/b/c.txt"), "one"), 201).headers.get("etag") ?? "";
    const second = expectStatus(await put(link("a/b/c.txt"), "three"), 200).headers.get("etag") ?? "";
    expect(second).not.toBe(first);
    expectStatus(await put(link("a/b/c.txt"), "stale", { "if-match": first }), 412);
    expectStatus(await put(link("a/b/c.txt"), "again", { "if-none-match": "*" }), 412);
    const read = expectStatus(await ask(link("a/b/c.txt")), 200);
    expect([read.text, read.headers.get("etag"), read.headers.get("content-length")]).toEqual([
      "three",
      second,
      "5",
    ]);
    expectStatus(await ask(link("a/b/c.txt"), { headers: { "if-none-match": second } }), 304);
    const range = expectStatus(await ask(link("a/b/c.txt"), { headers: { range: "bytes=1-2" } }), 206);
    expect([range.text, range.headers.get("content-range")]).toEqual(["hr", "bytes 1-2/5"]);
    const large = toContent(7, 3 * 2 ** 20);
    expectStatus(await put(link("large.bin"), large), 201);
    expect(versionOf(await fetch(link("large.bin")).then((answer) => answer.bytes()))).toBe(7);

    await Deno.symlink("/etc", join(home, "out"));
    await Deno.symlink("a", join(home, "within"));
    await Deno.symlink("a/b/c.txt", join(home, "last"));
    for (const path of ["out/passwd", "out/x/y", "within/b/c.txt", "last", "out"]) {
      expect(expectStatus(await ask(link(path)), 403).body["reason"], path).toBe("symlink");
      expectStatus(await put(link(path), "no"), 403);
      expectStatus(await ask(link(path), { method: "DELETE" }), 403);
    }
    expect(await Deno.readLink(join(home, "last"))).toBe("a/b/c.txt");
    expect(expectStatus(await ask(link("a/b")), 409).body["reason"]).toBe("is_directory");
    expect(expectStatus(await ask(link("a/b/c.txt/d")), 409).body["reason"]).toBe("parent_is_file");
    expectStatus(await ask(link("missing")), 404);
    expectStatus(await ask(link(".string/staging/x")), 403);
    expect((await ask(link("a/b/c.txt"), { method: "DELETE" })).body["existed"]).toBe(true);
    expect((await ask(link("a/b/c.txt"), { method: "DELETE" })).body["existed"]).toBe(false);
    expect(server.err()).not.toContain('"level":"error"');
  });
}
