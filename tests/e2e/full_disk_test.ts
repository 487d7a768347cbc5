/** A disk that fills up: what does not fit is refused, what was there stays, and freeing space heals all. */
import { join } from "../../base/std.ts";
import { ask, expectStatus, Operator, put, toLink } from "../helpers/api.ts";
import { curl } from "../helpers/curl.ts";
import { expect } from "../helpers/expect.ts";
import { testIf } from "../helpers/skip.ts";
import { NAMESPACE, NEEDS_NAMESPACE, type SmallDisk, withSmallDisk } from "../helpers/small_disk.ts";
import { HAS_CURL, NEEDS_CURL } from "../helpers/tools.ts";

const MIB = 2 ** 20;
const canTest = NAMESPACE !== undefined && HAS_CURL;
const needs = NAMESPACE === undefined ? NEEDS_NAMESPACE : NEEDS_CURL;

function staged({ dataFolder }: SmallDisk): Promise<Deno.DirEntry[]> {
  return Array.fromAsync(Deno.readDir(join(dataFolder, "workspaces/eve/.string/staging")));
}

testIf(
  canTest,
  needs,
  "PUT /fs/{path} answers 507 when the disk is full, keeps the old file, and works again when there is room",
  () =>
    withSmallDisk({ sizeMiB: 48, args: ["--disk-reserve", "0"] }, async (disk) => {
      const operator = await Operator.of({ url: disk.server.url, dataFolder: disk.dataFolder });
      await operator.pair();
      const { secret } = await operator.mint();
      const link = toLink(operator.url, "kept.bin", secret);
      expectStatus(await put(link, "the old one"), 201);
      const body = await Deno.makeTempFile();
      try {
        await Deno.truncate(body, 100 * MIB);
        for (const flags of [[], ["-H", "Transfer-Encoding: chunked"]]) {
          const refused = await curl("-H", "Expect:", ...flags, "-T", body, link);
          expect(refused, flags.join()).toMatchObject({ exit: 0, status: 507 });
          expect(JSON.parse(refused.body)).toMatchObject({ reason: "disk_full" });
          expect(refused.body).not.toContain("string-disk");
          expect(await staged(disk)).toEqual([]);
        }
      } finally {
        await Deno.remove(body);
      }
      await disk.fill(0);
      expect((await put(link, new Uint8Array(100_000))).status, "not a page is left").toBe(507);
      expect((await ask(link)).text).toBe("the old one");
      expect(await staged(disk)).toEqual([]);
      await disk.empty();
      expectStatus(await put(link, "the new one"), 200);
      expect((await ask(link)).text).toBe("the new one");
    }),
);

testIf(
  canTest,
  needs,
  "report S2: a mint that a full disk does not store shows no secret, and the next one works when there is room",
  () =>
    withSmallDisk({ sizeMiB: 24, args: ["--disk-reserve", "0"] }, async (disk) => {
      const operator = await Operator.of({ url: disk.server.url, dataFolder: disk.dataFolder });
      await operator.pair();
      await disk.fill(0);
      const grant = { agent_id: "eve", path_prefix: "", verbs: ["GET"], ttl_ms: 60_000 };
      let stored = 0;
      let refused = 0;
      // What the log of the database has room for is stored all the same.
      for (let n = 0; n < 2000 && refused < 5; n++) {
        const answer = await operator.call("POST", "/capabilities", grant);
        if (answer.status === 201) {
          stored++;
          continue;
        }
        refused++;
        expect([507, 503]).toContain(answer.status);
        expect(answer.text).not.toContain("caps_");
        expect(["disk_full", "unavailable"]).toContain(answer.body["reason"]);
      }
      expect(refused).toBe(5);
      expect((await ask(operator.url + "/health")).status, "reading goes on").toBe(200);
      await disk.empty();
      const { secret } = await operator.mint();
      expectStatus(await put(toLink(operator.url, "x", (await operator.mint()).secret), "x"), 201);
      expectStatus(await ask(toLink(operator.url, "x", secret)), 200);
      const listed = await operator.call("GET", "/capabilities?limit=1000");
      expect((listed.body["capabilities"] as unknown[]).length, "what was refused is not there")
        .toBe(Math.min(1000, stored + 2));
    }),
);

testIf(
  canTest,
  needs,
  "PUT /fs/{path} answers 507 below the reserve before a byte lands, while grants can be spent and revoked",
  () =>
    withSmallDisk({ sizeMiB: 48, args: ["--disk-reserve", "16MiB"] }, async (disk) => {
      const operator = await Operator.of({ url: disk.server.url, dataFolder: disk.dataFolder });
      await operator.pair();
      const { secret, token_id } = await operator.mint();
      const link = toLink(operator.url, "kept.bin", secret);
      expectStatus(await put(link, "kept"), 201);
      await disk.fill(8 * MIB);
      const freeBefore = await disk.freeBytes();
      const refused = await put(link, "tiny");
      expect(expectStatus(refused, 507).body["reason"]).toBe("disk_full");
      expect(await staged(disk)).toEqual([]);
      expect(await disk.freeBytes()).toBe(freeBefore);
      expect((await ask(link)).text).toBe("kept");

      const once = await operator.mint({ path_prefix: "kept.bin", verbs: ["GET"], single_use: true });
      expectStatus(await ask(toLink(operator.url, "kept.bin", once.secret)), 200);
      const again = await ask(toLink(operator.url, "kept.bin", once.secret));
      expect(expectStatus(again, 401).body["reason"]).toBe("already_used");
      expectStatus(await ask(link, { method: "DELETE" }), 200);
      await operator.revoke(token_id);
      expect(expectStatus(await ask(link), 401).body["reason"]).toBe("revoked");
    }),
);
