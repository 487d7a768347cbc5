/** Reports 13, 59: a server that dies in the middle of an upload leaves the old state, no lock and nothing to address. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { testIf } from "../helpers/skip.ts";
import {
  bearer,
  CONTAINMENTS,
  fs,
  isSame,
  namesIn,
  pattern,
  RawRequest,
  reasonOf,
  stagedBytes,
  stagingOf,
  startServerProcess,
  until,
  withFolder,
  withServer,
} from "./support.ts";

const CAN_KILL = Deno.build.os !== "windows";
const WHY_NOT = "a process cannot be killed outright here";

for (const containment of CONTAINMENTS) {
  const env = { STRING_CONTAINMENT: containment };

  testIf(
    CAN_KILL,
    WHY_NOT,
    `report 13: SIGKILL in the middle of PUTs leaves the old state (${containment})`,
    () =>
      withFolder(async (dataFolder) => {
        const old = pattern(200_000, 1);
        const home = join(dataFolder, "workspaces", "eve");
        let secret = "";
        {
          await using server = await startServerProcess(dataFolder, {}, { env });
          secret = await server.pair("eve");
          const url = `http://127.0.0.1:${server.port}/fs`;
          const put = await fetch(`${url}/kept.bin`, { method: "PUT", headers: bearer(secret), body: old });
          await put.body?.cancel();
          expect(put.status).toBe(201);
          const uploads = await Promise.all(
            ["kept.bin", "new.bin", "new/folder/deep.bin"].map(async (path) => {
              const upload = await RawRequest.open(server.port, "PUT", `/fs/${path}`, {
                ...bearer(secret),
                "content-length": "1000000",
              });
              await upload.send(pattern(500_000, 2));
              return upload;
            }),
          );
          await until(async () => await stagedBytes(home) > 3 * 400_000);
          expect(await server.program.kill("SIGKILL")).not.toBe(0);
          for (const upload of uploads) upload.close();
        }
        const left = await namesIn(stagingOf(home));
        expect(left.length).toBe(3);

        await using server = await startServer({ dataFolder, env });
        expect(await namesIn(stagingOf(home))).toEqual([]);
        expect(await namesIn(home)).toEqual([".string", "kept.bin"]);
        const kept = await server.fetch("/fs/kept.bin", { headers: bearer(secret) });
        expect(isSame(new Uint8Array(await kept.arrayBuffer()), old)).toBe(true);
        for (const path of ["new.bin", "new/folder/deep.bin"]) {
          expect((await fs(server, "GET", path, secret)).status).toBe(404);
        }
        // The same paths take a new upload at once.
        for (const path of ["kept.bin", "new.bin", "new/folder/deep.bin"]) {
          const put = await fs(server, "PUT", path, secret, { body: "after the crash" });
          expect([path, put.status]).toEqual([path, path === "kept.bin" ? 200 : 201]);
          expect((await fs(server, "GET", path, secret)).text).toBe("after the crash");
        }
      }),
  );

  Deno.test(`report 13: what is in staging cannot be addressed, in any spelling (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      const home = server.home("eve");
      using upload = await RawRequest.open(server.port, "PUT", "/fs/slow.bin", {
        ...bearer(secret),
        "content-length": "100",
      });
      await until(async () => (await namesIn(stagingOf(home))).length === 1);
      const name = (await namesIn(stagingOf(home)))[0] ?? "";
      const folders = [".string", ".STRING", "%2estring", "%2E%73tring", "./.string", "/.string", ".String"];
      for (const folder of folders) {
        for (const method of ["GET", "PUT", "DELETE"]) {
          for (const path of [`${folder}/staging/${name}`, `${folder}/staging`, folder, `${folder}/x`]) {
            const answer = await fs(server, method, path, secret, method === "PUT" ? { body: "x" } : {});
            const expected = [method, path, 403, "path_outside_scope"];
            expect([method, path, answer.status, answer.reason]).toEqual(expected);
          }
        }
        expect((await fs(server, "HEAD", `${folder}/staging/${name}`, secret)).status).toBe(403);
      }
      const minted = await server.admin("POST", "/capabilities", {
        agent_id: "eve",
        path_prefix: ".string/staging",
        verbs: ["GET"],
        ttl_ms: 1000,
      });
      expect(minted.status).toBe(400);
      await upload.send(pattern(100));
      await upload.readUntil("201 Created");
      upload.close();
      expect((await Deno.stat(join(home, "slow.bin"))).size).toBe(100);
    }, { env }));
}

testIf(
  CAN_KILL,
  WHY_NOT,
  "report 59: no lock and no lease of a single-use upload survives a crash",
  () =>
    withFolder(async (dataFolder) => {
      const home = join(dataFolder, "workspaces", "eve");
      let secret = "";
      {
        await using server = await startServerProcess(dataFolder);
        secret = await server.pair("eve", { single_use: true });
        using upload = await RawRequest.open(server.port, "PUT", "/fs/once.bin", {
          ...bearer(secret),
          "content-length": "1000000",
        });
        await upload.send(pattern(500_000));
        await until(async () => await stagedBytes(home) > 400_000);
        await server.program.kill("SIGKILL");
        upload.close();
      }
      await using server = await startServer({ dataFolder });
      const beganMs = performance.now();
      const missing = await fs(server, "GET", "once.bin", secret);
      expect([missing.status, missing.reason]).toEqual([404, "not_found"]);
      expect((await fs(server, "PUT", "once.bin", secret, { body: "landed" })).status).toBe(201);
      // A lease that is waited for would cost its whole life of fifteen seconds.
      expect(performance.now() - beganMs).toBeLessThan(5000);
      expect((await fs(server, "PUT", "once.bin", secret, { body: "again" })).reason).toBe("already_used");
      expect(await Deno.readTextFile(join(home, "once.bin"))).toBe("landed");
    }),
);

for (const containment of CONTAINMENTS) {
  Deno.test(`report 59: a long GET finishes the old bytes while PUT and DELETE go on (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      const old = pattern(8_000_000, 1), next = pattern(8_000_000, 2);
      await fs(server, "PUT", "a.bin", secret, { body: old });
      const get = () => server.fetch("/fs/a.bin", { headers: bearer(secret) });
      const slow = await get();
      const tag = slow.headers.get("etag");
      // Nothing of the body is read yet: the file is larger than what the sockets hold.
      expect((await fs(server, "PUT", "a.bin", secret, { body: next })).status).toBe(200);
      const second = await get();
      expect(second.headers.get("etag") === tag).toBe(false);
      expect((await fs(server, "DELETE", "a.bin", secret)).status).toBe(200);
      expect((await fs(server, "GET", "a.bin", secret)).status).toBe(404);
      expect(isSame(new Uint8Array(await slow.arrayBuffer()), old)).toBe(true);
      expect(isSame(new Uint8Array(await second.arrayBuffer()), next)).toBe(true);
    }, { env: { STRING_CONTAINMENT: containment } }));
}

Deno.test("report 59: an upload that its client abandons leaves its path free", () =>
  withServer(async (server) => {
    const { secret } = await server.mint({});
    for (let round = 0; round < 5; round++) {
      using upload = await RawRequest.open(server.port, "PUT", "/fs/a.bin", {
        ...bearer(secret),
        "content-length": "100000",
      });
      await upload.send(pattern(10_000));
      upload.close();
      const put = await fs(server, "PUT", "a.bin", secret, { body: `round ${round}` });
      expect([put.status, reasonOf(put.text)]).toEqual([round === 0 ? 201 : 200, undefined]);
      expect((await fs(server, "GET", "a.bin", secret)).text).toBe(`round ${round}`);
    }
  }));
