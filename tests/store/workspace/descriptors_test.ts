import { expect } from "../../helpers/expect.ts";
import { bodyOf, bytes, openDescriptors, path, refusal, testBoth } from "./fixture.ts";

testBoth(
  "no operation leaves a descriptor open, served or refused",
  async ({ store, workspace, put, read, at }) => {
    await put("in/file", "x");
    await Deno.symlink("file", at("in/link"));
    const late = () => {
      throw new TypeError("revoked meanwhile");
    };
    const round = async () => {
      // Just changed, so never from the store's own memory.
      await put("in/file", "x", { fromOutside: true });
      await read("in/file");
      await store.stat(workspace, path("in/file"));
      await store.isFromOutside(workspace, path("in/file"));
      for (const relative of ["", "in", "in/link", "in/link/x", "in/file/x", "nope", "nope/x/y"]) {
        await refusal(() => store.stat(workspace, path(relative)));
        await refusal(() => store.open(workspace, path(relative)));
        await refusal(() => store.isFromOutside(workspace, path(relative)));
        await refusal(() => store.remove(workspace, path(relative)));
        if (!relative.startsWith("nope")) await refusal(() => put(relative, "y"));
      }
      await refusal(() => put("new/parents/x", "y", { conditions: { ifMatch: "*" } }));
      await put("new/parents/x", "y", { beforeVisible: late }).catch(() => "as intended");
      await put("new/parents/x", "y");
      await store.remove(workspace, path("new/parents/x"));
      await Deno.remove(at("new"), { recursive: true });
      const aborted = await store.beginUpload(workspace, path("x"), { maxBytes: 10, fromOutside: false });
      await aborted.abort();
      const large = await store.beginUpload(workspace, path("x"), { maxBytes: 1, fromOutside: false });
      await refusal(() => large.receive(bodyOf(bytes("xx"))));
      await store.sweep([workspace]);
      await store.createWorkspace(workspace);
      await store.removeEmptyWorkspace(workspace);
    };
    await round();
    const before = openDescriptors();
    for (let count = 0; count < 5; count++) await round();
    expect(openDescriptors()).toBe(before);
  },
);
