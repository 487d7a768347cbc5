/** Holds the write lock of a database file, as another program would. Arguments: its path, milliseconds. */
import { DatabaseSync } from "node:sqlite";

const [path = "", ms = "0"] = Deno.args;
const database = new DatabaseSync(path);
database.exec("BEGIN IMMEDIATE");
console.log("held");
await new Promise((resolve) => setTimeout(resolve, Number(ms)));
database.exec("COMMIT");
console.log(String(database.prepare("PRAGMA integrity_check").get()?.integrity_check));
database.close();
