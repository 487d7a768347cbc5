import { expect } from "../../helpers/expect.ts";
import { path, refusal, testBoth } from "./fixture.ts";

async function run(command: string, ...args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args, stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false; // not installed: the caller decides
  }
}

testBoth(
  "a FIFO, a socket and a device are not_a_file, at once and untouched",
  async ({ store, workspace, at }) => {
    await Deno.mkdir(at("in"));
    const listener = Deno.listen({ transport: "unix", path: at("in/socket") });
    const names = ["in/socket"];
    if (await run("mkfifo", at("in/fifo"))) names.push("in/fifo");
    // Only the superuser may make one; the others are enough elsewhere.
    if (await run("mknod", at("in/device"), "c", "1", "5")) names.push("in/device");
    try {
      for (const name of names) {
        const started = performance.now();
        const at = path(name);
        expect(await refusal(() => store.stat(workspace, at)), name).toBe("not_a_file");
        expect(await refusal(() => store.open(workspace, at)), name).toBe("not_a_file");
        expect(await refusal(() => store.remove(workspace, at)), name).toBe("not_a_file");
        const begin = () => store.beginUpload(workspace, at, { maxBytes: 10, fromOutside: false });
        expect(await refusal(begin), name).toBe("not_a_file");
        expect(await refusal(() => store.stat(workspace, path(`${name}/x`))), name).toBe("parent_is_file");
        expect(performance.now() - started).toBeLessThan(1000);
      }
    } finally {
      listener.close();
    }
  },
);
