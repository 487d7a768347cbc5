/**
 * The one list of what `string serve` can be told: flag, environment variable, default, and what is allowed.
 *
 * `serve --help` and the parser both walk it. Pure. Source: architecture.md.
 */
import { LOG_LEVELS, type LogLevel } from "../base/log.ts";
import {
  autoOrFlag,
  duration,
  flagValue,
  folder,
  integer,
  oneOf,
  type Parsed,
  printable,
  size,
} from "./setting_parsers.ts";
import { parseCorsOrigin, parseDbUrl, parseHost, parseHostName, parsePublicUrl } from "./setting_urls.ts";

/** One thing that can be set. */
export interface Setting<T> {
  /** Name of the flag without dashes; absent for what only the environment can set. */
  readonly flag?: string;
  /** Name of the environment variable. */
  readonly env: string;
  /** What stands for the value in the help; absent for a flag that is given or not. */
  readonly placeholder?: string;
  readonly description: string;
  /** What the help says is taken when nothing is given. */
  readonly defaultText?: string;
  /** Reads one value as a person writes it. */
  parse(text: string): Parsed<T>;
}

/** A setting that may be given many times: the flag again, the variable with commas. */
export interface ListSetting<T> extends Setting<T> {
  readonly list: true;
}

const YEAR_MS = 366 * 86_400_000;
/** Longest timer that a runtime can hold, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Longest body of an upload: 5 GiB (SYS-FS-10). */
export const DEFAULT_MAX_BYTES = 5 * 2 ** 30;
/** Free space below which no upload begins: 256 MiB (architecture.md "Workspaces"). */
export const DEFAULT_DISK_RESERVE_BYTES = 256 * 2 ** 20;
/** Longest life of a capability: 366 days (SYS-CAP-02). */
export const DEFAULT_MAX_TTL_MS = YEAR_MS;

/** Everything that can be set, by the name that a parsed flag has. */
export const SETTINGS = {
  host: {
    flag: "host",
    env: "STRING_HOST",
    placeholder: "address",
    description: "address to listen on",
    defaultText: "127.0.0.1",
    parse: parseHost,
  },
  port: {
    flag: "port",
    env: "STRING_PORT",
    placeholder: "number",
    description: "port to listen on; 0 picks a free one and prints it",
    defaultText: "3923",
    parse: integer(0, 65535),
  },
  data: {
    flag: "data",
    env: "STRING_DATA",
    placeholder: "folder",
    description: "data folder: records, keys, workspaces",
    defaultText: "./string-data",
    parse: folder,
  },
  db: {
    flag: "db",
    env: "STRING_DB",
    placeholder: "url",
    description: "libSQL server; its token comes from STRING_DB_TOKEN or STRING_DB_TOKEN_FILE",
    defaultText: "a file in the data folder",
    parse: parseDbUrl,
  },
  shared: {
    flag: "shared",
    env: "STRING_SHARED",
    description: "share the data folder with other servers that are started with --shared too",
    parse: flagValue,
  },
  maxBytes: {
    flag: "max-bytes",
    env: "STRING_MAX_BYTES",
    placeholder: "size",
    description: "longest body of an upload",
    defaultText: "5GiB",
    parse: size(1),
  },
  diskReserve: {
    flag: "disk-reserve",
    env: "STRING_DISK_RESERVE",
    placeholder: "size",
    description: "free disk space below which uploads are refused",
    defaultText: "256MiB",
    parse: size(0),
  },
  publicUrl: {
    flag: "public-url",
    env: "STRING_PUBLIC_URL",
    placeholder: "url",
    description: "address under which the world reaches this server; ends ambient trust",
    parse: parsePublicUrl,
  },
  allowedHost: {
    flag: "allowed-host",
    env: "STRING_ALLOWED_HOST",
    placeholder: "name",
    description: "another name that may stand in Host; may be repeated",
    list: true,
    parse: parseHostName,
  },
  trustedHops: {
    flag: "trusted-hops",
    env: "STRING_TRUSTED_HOPS",
    placeholder: "number",
    description: "proxies in front whose X-Forwarded-For is believed, counted from the right",
    defaultText: "0",
    parse: integer(0, 100),
  },
  trustLoopback: {
    flag: "trust-loopback",
    env: "STRING_TRUST_LOOPBACK",
    placeholder: "auto|true|false",
    description: "whether local requests of the server's own user need no token",
    defaultText: "auto",
    parse: autoOrFlag,
  },
  homes: {
    flag: "homes",
    env: "STRING_HOMES",
    placeholder: "folder",
    description: "folder inside which POST /agents may choose a home; may be repeated",
    list: true,
    parse: folder,
  },
  corsOrigin: {
    flag: "cors-origin",
    env: "STRING_CORS_ORIGIN",
    placeholder: "origin",
    description: "web origin whose pages may use /fs with a capability; may be repeated",
    list: true,
    parse: parseCorsOrigin,
  },
  role: {
    flag: "role",
    env: "STRING_ROLE",
    placeholder: "dev|test|production",
    description: "what /describe says this server is for",
    defaultText: "dev",
    parse: oneOf(["dev", "test", "production"]),
  },
  label: {
    flag: "label",
    env: "STRING_LABEL",
    placeholder: "text",
    description: "what /describe calls this server",
    defaultText: "string",
    parse: printable(64),
  },
  logLevel: {
    flag: "log-level",
    env: "STRING_LOG_LEVEL",
    placeholder: LOG_LEVELS.join("|"),
    description: "least severe line that is logged",
    defaultText: "info",
    parse: oneOf<LogLevel>(LOG_LEVELS),
  },
  maxTtl: {
    env: "STRING_MAX_TTL",
    description: "longest life of a capability",
    parse: duration(100 * YEAR_MS),
  },
  containment: {
    env: "STRING_CONTAINMENT",
    description: "auto lets the kernel contain paths where it can; portable never does",
    parse: oneOf(["auto", "portable"]),
  },
  idleTimeout: {
    env: "STRING_IDLE_TIMEOUT",
    description: "how long an upload may be silent",
    parse: duration(MAX_TIMER_MS),
  },
  grace: {
    env: "STRING_GRACE",
    description: "how long running requests may take after a stop was asked for",
    parse: duration(MAX_TIMER_MS),
  },
} as const satisfies Record<string, Setting<unknown> | ListSetting<unknown>>;
