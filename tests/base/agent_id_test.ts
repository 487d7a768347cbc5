import { isAgentId } from "../../base/agent_id.ts";
import { expect } from "../helpers/expect.ts";

Deno.test("isAgentId() takes one plain segment in lower case (SYS-AG-02, report 22)", () => {
  for (const text of ["eve", "discord-channel", "a", "0", "a.b_c-d", "x".repeat(64)]) {
    expect(isAgentId(text), text).toBe(true);
  }
  const refused = [
    "..",
    ".",
    "",
    "a/b",
    "a\0",
    "CON",
    "-rf",
    "x".repeat(300),
    "Eve",
    "a..b",
    ".a",
    "eve\n",
    "éve",
    "eve ",
  ];
  for (const text of refused) expect(isAgentId(text), JSON.stringify(text)).toBe(false);
});
