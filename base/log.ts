/**
 * Structured log lines on standard error.
 *
 * A line is one JSON object, or plain text for a person at a terminal. Callers pass names and counts, never
 * secrets, query strings or paths of a grant.
 */

/** Severity, least first; `silent` prints nothing. */
export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
/** One of `LOG_LEVELS`. */
export type LogLevel = typeof LOG_LEVELS[number];

/** Values of one log line beside its message. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Writes log lines of its level and above. */
export interface Log {
  /** The least severity that is written. */
  level: LogLevel;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** How a log is made; `write` gets whole lines with their line break. */
export interface LogOptions {
  level: LogLevel;
  format: "json" | "text";
  write(line: string): void;
  now(): number;
}

function formatText(at: string, level: LogLevel, message: string, fields: LogFields): string {
  const rest = Object.entries(fields).filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${typeof value === "string" ? JSON.stringify(value) : value}`).join("");
  return `${at} ${level.toUpperCase().padEnd(5)} ${message}${rest}\n`;
}

/** Returns a log that writes through `options.write`. */
export function createLog(options: LogOptions): Log {
  const emit = (level: Exclude<LogLevel, "silent">) => (message: string, fields: LogFields = {}) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(log.level)) return;
    const at = new Date(options.now()).toISOString();
    options.write(
      options.format === "json"
        ? JSON.stringify({ at, level, message, ...fields }) + "\n"
        : formatText(at, level, message, fields),
    );
  };
  const log: Log = {
    level: options.level,
    debug: emit("debug"),
    info: emit("info"),
    warn: emit("warn"),
    error: emit("error"),
  };
  return log;
}

/** A log that writes nothing. */
export const silentLog: Log = createLog({ level: "silent", format: "json", write() {}, now: () => 0 });
