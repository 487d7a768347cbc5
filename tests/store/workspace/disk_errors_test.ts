import { AppError } from "../../../base/errors.ts";
import { diskCodeOf, DiskError, diskError, toRefusal } from "../../../store/workspace/disk_errors.ts";
import { expect } from "../../helpers/expect.ts";

const rows: [code: string, reason: string, status: number][] = [
  ["ENOENT", "not_found", 404],
  ["ELOOP", "symlink", 403],
  ["ENOTDIR", "parent_is_file", 409],
  ["EISDIR", "is_directory", 409],
  ["ENOTREG", "not_a_file", 409],
  ["EACCES", "permission_denied", 403],
  ["EPERM", "permission_denied", 403],
  ["EROFS", "permission_denied", 403],
  ["ENAMETOOLONG", "invalid_path", 400],
  ["EINVAL", "invalid_path", 400],
  ["ENOSPC", "disk_full", 507],
  ["EDQUOT", "disk_full", 507],
  ["EMFILE", "unavailable", 503],
  ["ENFILE", "unavailable", 503],
];

for (const [code, reason, status] of rows) {
  Deno.test(`toRefusal() turns ${code} into ${reason}`, () => {
    const refused = toRefusal(new DiskError(code, "open"), "read", "in/x");
    expect(refused).toBeInstanceOf(AppError);
    expect((refused as AppError).code).toBe(reason);
    expect((refused as AppError).status).toBe(status);
  });
}

Deno.test("toRefusal() says nothing of the host or the system (SYS-ERR-03)", () => {
  let error: unknown;
  try {
    Deno.openSync("/no/such/folder/on/this/host");
  } catch (caught) {
    error = caught;
  }
  const refused = toRefusal(error, "read", "in/x") as AppError;
  expect(refused.code).toBe("not_found");
  expect(`${refused.message} ${(refused.cause as Error).message}`).not.toMatch(/such\/folder|os error/);
  expect(refused.message).toContain('"in/x"');
});

Deno.test("toRefusal() leaves what no caller can cause a bug with its cause", () => {
  const refused = toRefusal(diskError(-5, "statx"), "read", "in/x");
  expect(refused).not.toBeInstanceOf(AppError);
  expect((refused as Error).message).not.toContain("in/x");
  expect(diskCodeOf((refused as Error).cause)).toBe("EIO");
  const ours = new TypeError("ours");
  expect(toRefusal(ours, "read", "in/x")).toBe(ours);
});

Deno.test("toRefusal() passes an AppError on as it is", () => {
  const refused = new AppError("too_large", "Cannot");
  expect(toRefusal(refused, "write", "x")).toBe(refused);
});
