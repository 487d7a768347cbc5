/** Readers for settings that are addresses. Pure; each says what is allowed instead. */
import type { Parsed } from "./setting_parsers.ts";

function tryParseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/** Returns the address without the brackets of IPv6 when `text` is one, else undefined. */
function tryParseIpv6(text: string): string | undefined {
  const inner = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  return /^[0-9a-f.]*:[0-9a-f:.]*$/i.test(inner) && URL.canParse(`http://[${inner}]/`) ? inner : undefined;
}

/** Reads an address to listen on: a name, IPv4, or IPv6 with or without brackets (returned without). */
export function parseHost(text: string): Parsed<string> {
  const ipv6 = tryParseIpv6(text);
  const host = ipv6 ?? text.toLowerCase();
  return ipv6 !== undefined || HOST_NAME.test(host)
    ? { value: host }
    : { allowed: "an IP address or a host name, without scheme and port" };
}

/** Reads a name for the `Host` header: lower case, an IPv6 address in brackets, no port. */
export function parseHostName(text: string): Parsed<string> {
  const allowed = "a host name without scheme, port and path, such as files.example.org";
  const ipv6 = tryParseIpv6(text);
  if (ipv6 !== undefined) return { value: new URL(`http://[${ipv6}]/`).hostname };
  const url = /[/?#@:\\\s]/.test(text) ? undefined : tryParseUrl(`http://${text}/`);
  return url !== undefined && HOST_NAME.test(url.hostname) ? { value: url.hostname } : { allowed };
}

/** Reads the public URL: http or https, no query, fragment or user; a slash at its end is removed. */
export function parsePublicUrl(text: string): Parsed<string> {
  const allowed = "an http or https URL without user, query and fragment, such as https://string.example.org";
  const url = tryParseUrl(text);
  if (url === undefined || !/^https?:\/\//i.test(text)) return { allowed, secret: text.includes("@") };
  if (url.username !== "" || url.password !== "" || text.includes("@")) return { allowed, secret: true };
  if (/[?#]/.test(text)) return { allowed, secret: true };
  return { value: url.origin + url.pathname.replace(/\/+$/, "") };
}

/** Reads one exact web origin: scheme, host and, where it is not the scheme's own, port. */
export function parseCorsOrigin(text: string): Parsed<string> {
  const url = tryParseUrl(text);
  const isWeb = url !== undefined && /^https?:$/.test(url.protocol) && !url.hostname.includes("*");
  return isWeb && url.origin === text.toLowerCase()
    ? { value: url.origin }
    : { allowed: "one exact origin such as https://app.example.org, without path and without '*'" };
}

/** Reads the address of a libSQL server. A secret in it is refused: everyone on the host can see a command line. */
export function parseDbUrl(text: string): Parsed<string> {
  const url = tryParseUrl(text);
  if (url === undefined || !/^(?:https?|libsql):\/\/[^/]/i.test(text)) {
    return {
      allowed: "a libsql, https or http URL; leave it out for a file in the data folder",
      secret: /@|token/i.test(text),
    };
  }
  const hasUser = url.username !== "" || url.password !== "";
  if (hasUser || [...url.searchParams.keys()].some((name) => /token|password|secret/i.test(name))) {
    return {
      allowed: "a URL without user and without a token; set STRING_DB_TOKEN or STRING_DB_TOKEN_FILE instead",
      secret: true,
    };
  }
  return { value: text };
}
