/**
 * The server's configuration: flag over environment over default, read once, then immutable.
 *
 * Pure: values and environment in, configuration out. A config file will be one more layer between the environment
 * and the defaults.
 */
import type { LogLevel } from "../base/log.ts";
import { OperatorError } from "../base/operator_error.ts";
import { resolve } from "../base/std.ts";
import { refuseTracing } from "./tracing.ts";
import {
  DEFAULT_DISK_RESERVE_BYTES,
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_TTL_MS,
  type ListSetting,
  type Setting,
  SETTINGS,
} from "./settings.ts";

/** What a server runs with. Sizes in bytes, times in milliseconds, folders absolute. */
export interface ServerConfig {
  /** Address to listen on, IPv6 without brackets. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly dataFolder: string;
  /** A libSQL server; without it the database is a file in the data folder. */
  readonly dbUrl?: string;
  readonly dbToken?: string;
  /** Whether other processes use the same records: `--shared`, and always with a database server. */
  readonly shared: boolean;
  readonly maxBytes: number;
  readonly diskReserveBytes: number;
  /** Without a slash at its end. */
  readonly publicUrl?: string;
  /** Lower case, without ports. */
  readonly allowedHosts: readonly string[];
  readonly trustedHops: number;
  readonly trustLoopback: "auto" | boolean;
  readonly homes: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly role: "dev" | "test" | "production";
  readonly label: string;
  readonly logLevel: LogLevel;
  readonly maxTtlMs: number;
  /** `auto` uses the kernel's containment where there is one. */
  readonly containment: "auto" | "portable";
  /** How long an upload may be silent. */
  readonly idleTimeoutMs: number;
  /** How long running requests may take once a stop was asked for. */
  readonly graceMs: number;
}

/** Flags as they were given, by the key that they have in `SETTINGS`. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
/** Environment variables. An empty one counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

function parseWith<T>(setting: Setting<T>, source: string, text: string): T {
  const parsed = setting.parse(text);
  if ("value" in parsed) return parsed.value;
  const got = parsed.secret ? "" : `, got "${text}"`;
  throw new OperatorError(
    "usage",
    `Cannot use ${source}: it must be ${parsed.allowed}${got}`,
    "See: string serve --help",
  );
}

/** Reads settings from flags, then from the environment. */
class Layers {
  constructor(readonly flags: FlagValues, readonly env: Environment) {}

  /** Returns what was given for `key`, or undefined. */
  one<T>(key: string, setting: Setting<T>): T | undefined {
    const flag = this.flags[key];
    if (flag !== undefined) return parseWith(setting, `--${setting.flag}`, String(flag));
    const text = this.env[setting.env];
    return text === undefined || text === "" ? undefined : parseWith(setting, setting.env, text);
  }

  /** Returns all that was given for `key`, each once; a flag replaces what the environment says. */
  many<T>(key: string, setting: ListSetting<T>): readonly T[] {
    const flag = this.flags[key];
    const fromFlag = flag === undefined ? undefined : Array.isArray(flag) ? flag : [String(flag)];
    const texts: readonly string[] = fromFlag ??
      (this.env[setting.env] ?? "").split(",").map((text) => text.trim()).filter((text) => text !== "");
    const source = fromFlag === undefined ? setting.env : `--${setting.flag}`;
    return [...new Set(texts.map((text) => parseWith(setting, source, text)))];
  }
}

/**
 * Returns the configuration, each value from its flag, else from `STRING_…`, else the default.
 *
 * Refuses (OperatorError `usage`) a value that is not allowed, naming the flag or variable, the value and what is
 * allowed, and an environment in which the runtime traces requests. A value that may hold a secret is not repeated. The database's token comes from `STRING_DB_TOKEN` only.
 *
 * @param cwd Folder against which relative folders are read.
 */
export function parseServerConfig(
  flags: FlagValues,
  env: Environment,
  cwd: string = Deno.cwd(),
): ServerConfig {
  refuseTracing(env);
  const layers = new Layers(flags, env);
  const dbUrl = layers.one("db", SETTINGS.db);
  const publicUrl = layers.one("publicUrl", SETTINGS.publicUrl);
  const dbToken = env["STRING_DB_TOKEN"] || undefined;
  return {
    host: layers.one("host", SETTINGS.host) ?? "127.0.0.1",
    port: layers.one("port", SETTINGS.port) ?? 3923,
    dataFolder: resolve(cwd, layers.one("data", SETTINGS.data) ?? "string-data"),
    ...(dbUrl === undefined ? {} : { dbUrl }),
    ...(dbToken === undefined ? {} : { dbToken }),
    // Another machine may use the same database server at any time, whether this one knows or not.
    shared: (layers.one("shared", SETTINGS.shared) ?? false) || dbUrl !== undefined,
    maxBytes: layers.one("maxBytes", SETTINGS.maxBytes) ?? DEFAULT_MAX_BYTES,
    diskReserveBytes: layers.one("diskReserve", SETTINGS.diskReserve) ?? DEFAULT_DISK_RESERVE_BYTES,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    allowedHosts: layers.many("allowedHost", SETTINGS.allowedHost),
    trustedHops: layers.one("trustedHops", SETTINGS.trustedHops) ?? 0,
    trustLoopback: layers.one("trustLoopback", SETTINGS.trustLoopback) ?? "auto",
    homes: layers.many("homes", SETTINGS.homes).map((folder) => resolve(cwd, folder)),
    corsOrigins: layers.many("corsOrigin", SETTINGS.corsOrigin),
    role: layers.one("role", SETTINGS.role) ?? "dev",
    label: layers.one("label", SETTINGS.label) ?? "string",
    logLevel: layers.one("logLevel", SETTINGS.logLevel) ?? "info",
    maxTtlMs: layers.one("maxTtl", SETTINGS.maxTtl) ?? DEFAULT_MAX_TTL_MS,
    containment: layers.one("containment", SETTINGS.containment) ?? "auto",
    idleTimeoutMs: layers.one("idleTimeout", SETTINGS.idleTimeout) ?? 60_000,
    graceMs: layers.one("grace", SETTINGS.grace) ?? 10_000,
  };
}
