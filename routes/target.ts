/**
 * The request target, read once: what the policy, the router and the disk see is cut from the same string.
 *
 * The runtime hands over the target as it was sent, behind `http://<Host>`. Source: reports M1, 20, 52; architecture.md
 * "Everywhere: no or two Host, or an absolute-form target whose authority differs, is 400".
 */
import { AppError } from "../base/errors.ts";
import { tryParseHost } from "../base/addresses.ts";

/** A request target in its two parts, both raw (percent-encoded). */
export interface Target {
  /** Begins with "/". */
  readonly path: string;
  /** Without its "?"; "" when there is none. */
  readonly query: string;
  /** The `Host` header as it was sent. */
  readonly host: string;
}

function splitAuthority(url: string): { authority: string; rest: string } | undefined {
  const start = url.indexOf("://");
  if (start < 0) return undefined;
  const slash = url.slice(start + 3).search(/[/?#]/);
  const end = slash < 0 ? url.length : start + 3 + slash;
  return { authority: url.slice(start + 3, end), rest: url.slice(end) };
}

/** The last `Host` that passed, and what begins the URLs of its requests: connections repeat theirs. */
let known = { host: "", prefix: "" };

/** Returns what begins the URL of a request in origin form. Throws `bad_host` for a header that is no one name. */
function requirePrefix(host: string): string {
  if (host === "") {
    throw new AppError("bad_host", "Cannot serve a request without a Host header");
  }
  if (host === known.host) return known.prefix;
  if (tryParseHost(host) === undefined) {
    throw new AppError("bad_host", "Cannot serve a request whose Host header is not one name or address");
  }
  known = { host, prefix: `http://${host}/` };
  return known.prefix;
}

/** Returns the path and query of a target in absolute form. Throws `bad_host` when it names another host. */
function requireOwnAuthority(url: string, host: string): string {
  const parts = splitAuthority(url);
  if (parts === undefined || parts.authority.toLowerCase() !== host.toLowerCase()) {
    throw new AppError(
      "bad_host",
      "Cannot serve a request whose target names another host than its Host header",
    );
  }
  return parts.rest.startsWith("/") ? parts.rest : `/${parts.rest}`;
}

/** Reads the target of a request. Throws `bad_host` or `invalid_request`. */
export function readTarget(request: Request): Target {
  const host = request.headers.get("host") ?? "";
  const prefix = requirePrefix(host);
  const { url } = request;
  const rest = url.startsWith(prefix) ? url.slice(prefix.length - 1) : requireOwnAuthority(url, host);
  if (rest.includes("#")) {
    throw new AppError("invalid_request", "Cannot serve a target with a fragment ('#')");
  }
  const question = rest.indexOf("?");
  return question < 0
    ? { path: rest, query: "", host }
    : { path: rest.slice(0, question), query: rest.slice(question + 1), host };
}

/** Decodes one name or value of a query (form data: `+` is a space); undefined when it is not valid UTF-8. */
export function tryDecodeQuery(text: string): string | undefined {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined; // a bad escape or bytes that are no UTF-8: the caller names the parameter
  }
}

/** Returns all values of one query parameter, decoded, in order. Throws `invalid_request` for a bad escape. */
export function readQuery(query: string, name: string): string[] {
  if (query === "") return [];
  const values: string[] = [];
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const key = equals < 0 ? pair : pair.slice(0, equals);
    if (key !== name && tryDecodeQuery(key) !== name) continue;
    const value = tryDecodeQuery(equals < 0 ? "" : pair.slice(equals + 1));
    if (value === undefined) {
      throw new AppError("invalid_request", `Cannot read query parameter '${name}': bad escape`);
    }
    values.push(value);
  }
  return values;
}

/** Returns the one value of a query parameter, or undefined. Throws `invalid_request` when it is given twice. */
export function readSingleQuery(query: string, name: string): string | undefined {
  const values = readQuery(query, name);
  if (values.length > 1) {
    throw new AppError("invalid_request", `Cannot read query parameter '${name}': given twice`);
  }
  return values[0];
}
