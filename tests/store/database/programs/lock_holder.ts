/** Holds the write lock of a database file from «hold» to «release», with plain SQL of its own. */
import Database from "libsql";
import { inputLines } from "./program.ts";

const database = new Database(Deno.args[0] ?? "");
for await (const line of inputLines()) {
  try {
    if (line === "hold") database.exec("BEGIN IMMEDIATE");
    else database.exec("COMMIT");
    console.log(line);
  } catch (error) {
    console.log(String(error));
  }
}
