import { AppError } from "../../../base/errors.ts";
import { checkWriteConditions } from "../../../store/workspace/conditions.ts";
import type { FileVersion, WriteConditions } from "../../../store/workspace/types.ts";
import { expect } from "../../helpers/expect.ts";

const file: FileVersion = { sizeBytes: 3, mtimeMs: 1_700_000_000_900, etag: '"a"' };

const rows: [name: string, WriteConditions | undefined, FileVersion | undefined, holds: boolean][] = [
  ["no conditions on no file", undefined, undefined, true],
  ["no conditions on a file", {}, file, true],
  ["If-Match with its tag", { ifMatch: ['"b"', '"a"'] }, file, true],
  ["If-Match with another tag", { ifMatch: ['"b"'] }, file, false],
  ["If-Match with a weak tag", { ifMatch: ['W/"a"'] }, file, false],
  ["If-Match with nothing left to match", { ifMatch: [] }, file, false],
  ["If-Match * on a file", { ifMatch: "*" }, file, true],
  ["If-Match * on no file", { ifMatch: "*" }, undefined, false],
  ["If-Match with a tag on no file", { ifMatch: ['"a"'] }, undefined, false],
  ["If-None-Match * on no file", { ifNoneMatch: "*" }, undefined, true],
  ["If-None-Match * on a file", { ifNoneMatch: "*" }, file, false],
  ["If-None-Match with its tag", { ifNoneMatch: ['"a"'] }, file, false],
  ["If-None-Match with its tag, weak", { ifNoneMatch: ['W/"a"'] }, file, false],
  ["If-None-Match with another tag", { ifNoneMatch: ['"b"'] }, file, true],
  ["If-Unmodified-Since its own second", { ifUnmodifiedSinceMs: 1_700_000_000_000 }, file, true],
  ["If-Unmodified-Since the second before", { ifUnmodifiedSinceMs: 1_699_999_999_000 }, file, false],
  ["If-Unmodified-Since on no file", { ifUnmodifiedSinceMs: 0 }, undefined, true],
  ["If-Match overrules If-Unmodified-Since", { ifMatch: ['"a"'], ifUnmodifiedSinceMs: 0 }, file, true],
];

for (const [name, conditions, current, holds] of rows) {
  Deno.test(`checkWriteConditions() ${holds ? "passes" : "refuses"} ${name} (SYS-FS-05)`, () => {
    let code = "passed";
    try {
      checkWriteConditions(conditions, current);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      code = error.code;
    }
    expect(code).toBe(holds ? "passed" : "precondition_failed");
  });
}
