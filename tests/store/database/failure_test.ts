import { expect } from "../../helpers/expect.ts";
import { AppError } from "../../../base/errors.ts";
import { createLog } from "../../../base/log.ts";
import { ConstraintError } from "../../../store/database/engine.ts";
import { FaultLog, isBusy, toFailure } from "../../../store/database/failure.ts";

/** An error as a driver throws it; a server gives no number. */
function driverError(code: string, rawCode?: number): Error {
  return Object.assign(new Error(`${code}: /srv/data/string.db`), { code, rawCode });
}

Deno.test("toFailure() answers each result code, by number or by name alone, without the driver's words", () => {
  const rows = [
    ["SQLITE_BUSY", 5, "unavailable"],
    ["SQLITE_BUSY_SNAPSHOT", 517, "unavailable"],
    ["SQLITE_LOCKED", 6, "unavailable"],
    ["SQLITE_IOERR_FSYNC", 1034, "unavailable"],
    ["UNKNOWN_SQLITE_ERROR_4874", 4874, "disk_full"],
    ["SQLITE_FULL", 13, "disk_full"],
    ["SQLITE_CORRUPT", 11, "unavailable"],
    ["SQLITE_NOTADB", 26, "unavailable"],
    ["SQLITE_READONLY", 8, "unavailable"],
  ] as const;
  for (const [code, rawCode, expected] of rows) {
    const errors = code.startsWith("UNKNOWN") ? [driverError(code, rawCode)] : [
      driverError(code, rawCode),
      driverError(code),
    ];
    for (const error of errors) {
      const failure = toFailure(error);
      expect(failure, code).toBeInstanceOf(AppError);
      expect(failure).toMatchObject({ code: expected });
      expect((failure as AppError).message.includes("/srv")).toBe(false);
      expect((failure as AppError).details.retryAfterSeconds).toBe(
        expected === "unavailable" ? 1 : undefined,
      );
    }
  }
  expect(isBusy(driverError("SQLITE_BUSY_SNAPSHOT"))).toBe(true);
  expect(isBusy(driverError("SQLITE_FULL", 13))).toBe(false);
});

Deno.test("toFailure() leaves bugs as they are, and calls every kind of constraint one", () => {
  for (const bug of [driverError("SQLITE_ERROR", 1), new TypeError("ours"), "thrown text", undefined]) {
    expect(toFailure(bug)).toBe(bug);
  }
  const constraints = [
    driverError("SQLITE_CONSTRAINT"),
    driverError("SQLITE_CONSTRAINT_UNIQUE", 2067),
    driverError("UNKNOWN_SQLITE_ERROR_3091", 3091),
  ];
  for (const error of constraints) expect(toFailure(error)).toBeInstanceOf(ConstraintError);
});

Deno.test("FaultLog writes one line for a fault however often it is met, and one when it is over", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", format: "json", write: (line) => lines.push(line), now: () => 0 });
  const faults = new FaultLog(log);
  const meet = (error: Error) => faults.report(error, toFailure(error));
  faults.clear();
  for (let n = 0; n < 300; n++) meet(driverError("SQLITE_FULL", 13));
  meet(driverError("SQLITE_CONSTRAINT", 19));
  meet(driverError("SQLITE_BUSY", 5));
  faults.clear();
  faults.clear();
  meet(driverError("SQLITE_FULL", 13));
  const seen = lines.map((line) => JSON.parse(line)).map(({ message, code }) => code ?? message);
  expect(seen).toEqual(["SQLITE_FULL", "SQLITE_BUSY", "database works again", "SQLITE_FULL"]);
  expect(lines.join("").includes("/srv")).toBe(false);
});
