import { expect } from "../../helpers/expect.ts";
import { databasePath } from "../../../store/database/open.ts";
import { openRecords, refusalOf, withPath } from "./helpers.ts";

Deno.test("databasePath() takes paths and file URLs, leaves servers alone, and refuses other schemes", () => {
  expect(databasePath("/srv/data/string.db")).toBe("/srv/data/string.db");
  expect(databasePath("data/a%20b.db")).toBe("data/a%20b.db");
  expect(databasePath("file:/srv/a%20b.db")).toBe("/srv/a b.db");
  expect(databasePath("file:///srv/a.db")).toBe("/srv/a.db");
  for (const url of ["http://h:1", "https://h", "libsql://h", "HTTP://h"]) {
    expect(databasePath(url)).toBeUndefined();
  }
  for (const url of ["postgres://h/db", "file:relative.db", "ws://h"]) {
    expect(() => databasePath(url), url).toThrow(TypeError);
  }
});

Deno.test("openDatabase() refuses a server URL that carries a token or a password", async () => {
  for (const url of ["https://h/?authToken=secret-token", "https://user:secret-token@h/"]) {
    const refusal = await refusalOf(openRecords(url));
    expect(refusal).toBeInstanceOf(TypeError);
    expect((refusal as Error).message.includes("secret-token")).toBe(false);
  }
});

Deno.test("openDatabase() keeps the records of a file from one start to the next", () =>
  withPath(async (path) => {
    const first = await openRecords(path);
    await first.settings.set("kept", "yes");
    await first.close();
    const second = await openRecords(`file:${path}`);
    expect(await second.settings.get("kept")).toBe("yes");
    await second.close();
  }));

Deno.test("openDatabase() refuses with unavailable, and without the path, a folder that is missing", () =>
  withPath(async (path) => {
    const refusal = await refusalOf(openRecords(`${path}/missing/string.db`));
    expect(refusal).toMatchObject({ code: "unavailable" });
    expect((refusal as Error).message.includes(path)).toBe(false);
  }));
