/** How a command fails: a sentence, a hint, and an exit code that a script can tell apart. */
import { AppError } from "../base/errors.ts";
import { OperatorError } from "../base/operator_error.ts";

/** The exit codes of every command. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  conflict: 5,
  unreachable: 6,
  tooLarge: 7,
} as const;

/** A failure that a command foresees. The message ends without a full stop and holds no secret. */
export class CliFailure extends Error {
  override readonly name = "CliFailure";

  constructor(readonly exitCode: number, message: string, readonly hint?: string) {
    super(message);
  }
}

/** Returns a failure of usage: the command line or the environment is wrong. */
export function usageFailure(message: string, hint?: string): CliFailure {
  return new CliFailure(EXIT.usage, message, hint);
}

/** Returns the exit code for the status of a refusal. */
export function exitCodeForStatus(status: number): number {
  switch (status) {
    case 400:
      return EXIT.usage;
    case 401:
    case 403:
      return EXIT.refused;
    case 404:
      return EXIT.notFound;
    case 409:
    case 412:
      return EXIT.conflict;
    case 413:
    case 507:
      return EXIT.tooLarge;
    case 502:
    case 503:
    case 504:
      return EXIT.unreachable;
    default:
      return EXIT.failed;
  }
}

/** Returns any error as a failure of the command line. What nobody foresaw keeps its message and exits with 1. */
export function toFailure(error: unknown): CliFailure {
  if (error instanceof CliFailure) return error;
  if (error instanceof OperatorError) {
    return new CliFailure(error.kind === "usage" ? EXIT.usage : EXIT.failed, error.message, error.hint);
  }
  if (error instanceof AppError) {
    return new CliFailure(exitCodeForStatus(error.status), error.message, error.hint);
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new CliFailure(EXIT.failed, message, "This should not happen: please report it");
}
