/** Reads an answer field by field: a server of another version must fail with a sentence, not with `undefined`. */
import { CliFailure, EXIT } from "./failure.ts";
import { toPrintable } from "./output.ts";

function missing(name: string): CliFailure {
  return new CliFailure(
    EXIT.failed,
    `Cannot read the server's answer: it has no usable "${name}"`,
    "Check that server and command line are of the same version",
  );
}

/** Returns a text of an answer, safe to print. */
export function textField(answer: Record<string, unknown>, name: string): string {
  const value = answer[name];
  if (typeof value !== "string") throw missing(name);
  return toPrintable(value);
}

/** Returns a text of an answer as it was sent, or undefined when there is none. Not for printing. */
export function optionalField(answer: Record<string, unknown>, name: string): string | undefined {
  const value = answer[name];
  return typeof value === "string" ? value : undefined;
}

/** Returns a number of an answer. */
export function numberField(answer: Record<string, unknown>, name: string): number {
  const value = answer[name];
  if (typeof value !== "number") throw missing(name);
  return value;
}

/** Returns a list of objects of an answer. */
export function listField(answer: Record<string, unknown>, name: string): Record<string, unknown>[] {
  const value = answer[name];
  if (!Array.isArray(value) || !value.every((each) => typeof each === "object" && each !== null)) {
    throw missing(name);
  }
  return value;
}

/** Returns a list of texts of an answer, safe to print. */
export function textsField(answer: Record<string, unknown>, name: string): string[] {
  const value = answer[name];
  if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) throw missing(name);
  return value.map(toPrintable);
}
