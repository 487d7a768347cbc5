/** Report 14: every name that a disk can hold goes in and comes out byte by byte. */
import { join } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { CONTAINMENTS, fs, namesIn, withServer } from "./support.ts";

const NAMES = [
  "보고서 über 100%.pdf",
  "a+b&c=d.txt",
  "emoji-🧵",
  "%2e%2e",
  "100%25",
  "..hidden",
  "...",
  "a b",
  " ",
  "trailing ",
  "trailing.",
  "tab\tand\nnewline",
  "a\r\nX-Y: z.txt",
  'quote".txt',
  "semi;colon?question#hash",
  "colon:and|pipe<>*",
  "-rf",
  "é".normalize("NFD"),
  "é".normalize("NFC"),
  "\u202Egnp.exe",
  "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}",
  ".env",
  "CON",
  "~",
  "名".repeat(85),
  "x".repeat(255),
];

for (const containment of CONTAINMENTS) {
  const options = { env: { STRING_CONTAINMENT: containment } };

  Deno.test(`report 14: names go to disk and back byte by byte (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      for (const name of NAMES) {
        const path = `in/${encodeURIComponent(name)}`;
        const put = await fs(server, "PUT", path, secret, { body: `bytes of ${name}` });
        expect([name, put.status]).toEqual([name, 201]);
        expect(JSON.parse(put.text).path).toBe(`in/${name}`);
      }
      expect(await namesIn(join(server.home("eve"), "in"))).toEqual([...NAMES].sort());
      for (const name of NAMES) {
        const path = `in/${encodeURIComponent(name)}`;
        const got = await fs(server, "GET", path, secret);
        expect([name, got.status, got.text]).toEqual([name, 200, `bytes of ${name}`]);
        expect((await fs(server, "HEAD", path, secret)).status).toBe(200);
        expect(JSON.parse((await fs(server, "DELETE", path, secret)).text)).toEqual({
          path: `in/${name}`,
          existed: true,
        });
      }
      expect(await namesIn(join(server.home("eve"), "in"))).toEqual([]);
    }, options));

  Deno.test(`report 14: a name of 256 bytes is 400 that names the limit (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      const tooLong = ["x".repeat(256), "名".repeat(86), "é".repeat(128), "x".repeat(300)];
      for (const name of tooLong) {
        for (const path of [encodeURIComponent(name), `${encodeURIComponent(name)}/inside`]) {
          for (const method of ["PUT", "GET", "DELETE"]) {
            const answer = await fs(server, method, path, secret, method === "PUT" ? { body: "x" } : {});
            expect([method, answer.status, answer.reason]).toEqual([method, 400, "invalid_path"]);
            expect(answer.text).toContain("255 bytes");
          }
        }
      }
      expect(await namesIn(server.home("eve"))).toEqual([".string"]);
    }, options));

  Deno.test(`report 14: a path of 4095 bytes is judged by the disk, one of 4096 is 400 (${containment})`, () =>
    withServer(async (server) => {
      const { secret } = await server.mint({});
      const longest = Array(16).fill("d".repeat(255)).join("/");
      expect(longest.length).toBe(4095);
      const over = await fs(server, "PUT", `${longest.slice(0, -2)}/xy`, secret, { body: "x" });
      const put = await fs(server, "PUT", longest, secret, { body: "deep" });
      if (put.status === 201) {
        expect((await fs(server, "GET", longest, secret)).text).toBe("deep");
        expect((await fs(server, "DELETE", longest, secret)).status).toBe(200);
      } else {
        // By its whole name on the host it may be too long for the disk.
        expect([put.status, put.reason]).toEqual([400, "invalid_path"]);
      }
      expect([over.status, over.reason]).toEqual([400, "invalid_path"]);
      expect(over.text).toContain("4095 bytes");
    }, options));
}
