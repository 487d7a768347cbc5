/** Spends each token that it is told, eight times at once, and says how often that worked. */
import { inputLines } from "./program.ts";
import { NOW, openRecords } from "../helpers.ts";

const db = await openRecords(Deno.args[0] ?? "", true);
console.log("ready");
for await (const tokenId of inputLines()) {
  const tries = Array.from({ length: 8 }, () => db.capabilities.spend({ tokenId, nowMs: NOW, begunMs: NOW }));
  console.log(String((await Promise.all(tries)).filter(Boolean).length));
}
await db.close();
