/**
 * Socket addresses and host names, as far as trust depends on them. Pure.
 *
 * `::ffff:127.0.0.1` is `127.0.0.1` everywhere. Source: architecture.md "Who is the operator".
 */

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** Returns an address in its plain form: brackets and zone dropped, a mapped IPv4 address unwrapped. */
export function toPlainAddress(address: string): string {
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "").toLowerCase();
  return MAPPED.exec(bare)?.[1] ?? bare;
}

/** Returns whether a plain address is an IPv4 address in dotted form. */
export function isIpv4(address: string): boolean {
  return IPV4.test(address);
}

/** Returns whether a text is an IP address, v4 or v6. */
export function isIpLiteral(text: string): boolean {
  const plain = toPlainAddress(text);
  return isIpv4(plain) || toIpv6Words(plain) !== undefined;
}

/** Returns whether an address is of this machine alone: 127.0.0.0/8 or ::1. */
export function isLoopbackAddress(address: string): boolean {
  const canonical = toCanonicalAddress(address);
  return canonical === "0:0:0:0:0:0:0:1" || /^0:0:0:0:0:ffff:7f[0-9a-f]{2}:/.test(canonical ?? "");
}

/**
 * Returns the one spelling of an address that others can be compared with: eight words in hexadecimal, an IPv4 address as
 * a mapped one. Undefined for what is no address.
 */
export function toCanonicalAddress(address: string): string | undefined {
  const plain = toPlainAddress(address);
  const words = toIpv6Words(isIpv4(plain) ? `::ffff:${plain}` : plain);
  return words?.map((word) => word.toString(16)).join(":");
}

/** Returns whether a host name means this machine wherever it is resolved: `localhost` or a loopback address. */
export function isLoopbackName(name: string): boolean {
  return name.toLowerCase() === "localhost" || isLoopbackAddress(name);
}

/** Returns the eight 16-bit words of an IPv6 address, or undefined when it is none. */
export function toIpv6Words(address: string): number[] | undefined {
  if (!address.includes(":")) return undefined;
  let text = address;
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (tail) {
    if (!isIpv4(tail[2]!)) return undefined;
    const [a, b, c, d] = tail[2]!.split(".").map(Number) as [number, number, number, number];
    text = `${tail[1]}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  }
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const words = halves.map((half) => half === "" ? [] : half.split(":"));
  const given = words.flat();
  if (!given.every((word) => /^[0-9a-f]{1,4}$/i.test(word))) return undefined;
  const missing = 8 - given.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const [before = [], after = []] = words;
  return [...before, ...Array(halves.length === 1 ? 0 : missing).fill("0"), ...after]
    .map((word) => Number.parseInt(word, 16));
}

/** A parsed `Host` header or authority: name in lower case without brackets, port as it was given. */
export interface HostName {
  readonly name: string;
  readonly port: string;
}

const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/;

/** Parses a `Host` header; undefined for anything but one name or address with an optional port. */
export function tryParseHost(host: string): HostName | undefined {
  const match = HOST.exec(host);
  if (!match) return undefined;
  if (match[1] !== undefined && toIpv6Words(match[1]) === undefined) return undefined;
  return { name: (match[1] ?? match[2]!).toLowerCase(), port: match[3] ?? "" };
}

/** Returns the key under which failures of one client are counted: the address, or the /64 of an IPv6 address. */
export function toClientKey(address: string): string {
  const plain = toPlainAddress(address);
  const words = toIpv6Words(plain);
  return words === undefined ? plain : words.slice(0, 4).map((word) => word.toString(16)).join(":") + "::/64";
}
