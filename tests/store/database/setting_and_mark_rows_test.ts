import { expect } from "../../helpers/expect.ts";
import { withRecords } from "./helpers.ts";

Deno.test("setIfAbsent() gives everyone the first value; set() replaces it", () =>
  withRecords(async ({ settings }) => {
    expect(await settings.get("fingerprint")).toBeUndefined();
    const values = await Promise.all(["a", "b"].map((value) => settings.setIfAbsent("fingerprint", value)));
    expect(values).toEqual(["a", "a"]);
    await settings.set("fingerprint", "c");
    await settings.set("other", "d");
    expect(await settings.get("fingerprint")).toBe("c");
  }));

Deno.test("MarkRows keeps a mark per workspace and path until it is cleared", () =>
  withRecords(async ({ marks }) => {
    await marks.set("inc_1", "in/보고서.pdf");
    await marks.set("inc_1", "in/보고서.pdf");
    expect(await marks.has("inc_1", "in/보고서.pdf")).toBe(true);
    expect(await marks.has("inc_2", "in/보고서.pdf")).toBe(false);
    expect(await marks.has("inc_1", "in")).toBe(false);
    await marks.clear("inc_1", "in/보고서.pdf");
    expect(await marks.has("inc_1", "in/보고서.pdf")).toBe(false);
    await marks.clear("inc_1", "never");
  }));
