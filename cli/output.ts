/**
 * The only place that writes to standard output and standard error.
 *
 * Results go to standard output, everything else to standard error, so that a pipe carries results alone.
 */

/** Where a command writes. */
export interface Output {
  /** Writes text as it is to standard output. */
  out(text: string): void;
  /** Writes text as it is to standard error. */
  err(text: string): void;
  /** Whether standard error is a terminal, where a person reads along. */
  readonly isTerminal: boolean;
}

/** Returns text that cannot steer a terminal: control and direction characters become `\u{…}`. */
export function toPrintable(text: string): string {
  return text.replace(
    /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** Writes one line of a result. */
export function printLine(output: Output, line: string): void {
  output.out(line + "\n");
}

/** Writes the one JSON document of a `--json` command. */
export function printJson(output: Output, value: unknown): void {
  output.out(JSON.stringify(value, null, 2) + "\n");
}

/** Writes what went wrong and what to do next, to standard error. */
export function printProblem(output: Output, message: string, hint?: string): void {
  output.err(`error: ${toPrintable(message)}\n`);
  if (hint !== undefined) output.err(`hint:  ${toPrintable(hint)}\n`);
}

/** Writes advice for a person who reads along; a script gets none. */
export function printNote(output: Output, note: string): void {
  if (output.isTerminal) output.err(`${toPrintable(note)}\n`);
}

function writeAll(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(text);
  try {
    for (let written = 0; written < bytes.length;) written += stream.writeSync(bytes.subarray(written));
  } catch (error) {
    // `string … | head` closes its end early, on purpose: nobody is left who could be told.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}

/** Returns the output of this process. */
export function processOutput(): Output {
  return {
    out: (text) => writeAll(Deno.stdout, text),
    err: (text) => writeAll(Deno.stderr, text),
    isTerminal: Deno.stderr.isTerminal(),
  };
}
