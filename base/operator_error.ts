/**
 * What the person who starts the program can put right: a bad flag, a folder in use, a port that is taken.
 *
 * It goes to the operator's own terminal, so it may name paths of the host; it never holds a secret. It is no
 * `AppError`: no client may ever see it.
 */
export class OperatorError extends Error {
  override readonly name = "OperatorError";

  /**
   * @param kind `usage`: the command line or the environment is wrong; `failed`: the machine refused.
   * @param message The action that failed and the value, without a final full stop.
   * @param hint What to do next.
   */
  constructor(
    readonly kind: "usage" | "failed",
    message: string,
    readonly hint?: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}
