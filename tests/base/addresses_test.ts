import {
  isIpLiteral,
  isLoopbackAddress,
  isLoopbackName,
  toCanonicalAddress,
  toClientKey,
  toPlainAddress,
  tryParseHost,
} from "../../base/addresses.ts";
import { expect } from "../helpers/expect.ts";
import { fc, law } from "../helpers/laws.ts";

Deno.test("isLoopbackAddress() takes 127.0.0.0/8 and ::1 in every spelling, and nothing else", () => {
  const loopback = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "::ffff:127.0.0.1",
    "::FFFF:127.0.0.1",
    "::ffff:7f00:1",
    "0:0:0:0:0:ffff:7f00:0001",
    "::1%lo",
  ];
  const other = [
    "128.0.0.1",
    "126.255.255.255",
    "0.0.0.0",
    "::",
    "::2",
    "1::1",
    "::ffff:128.0.0.1",
    "::127.0.0.1",
    "64:ff9b::127.0.0.1",
    "fe80::1%eth0",
    "127.1",
    "127.0.0.1.evil.example",
    "127.0.0.01x",
    "0177.0.0.1",
    "2130706433",
    "127.0.0.256",
    "",
    "localhost",
  ];
  expect(loopback.filter((address) => !isLoopbackAddress(address))).toEqual([]);
  expect(other.filter(isLoopbackAddress)).toEqual([]);
});

Deno.test("isLoopbackName() takes localhost in any case beside addresses, no name under it", () => {
  expect(["localhost", "LOCALHOST", "127.0.0.1", "::1"].every(isLoopbackName)).toBe(true);
  const others = ["localhost.", "a.localhost", "localhost.evil.example", "localhos", "", "0.0.0.0"];
  expect(others.filter(isLoopbackName)).toEqual([]);
});

Deno.test("tryParseHost() reads one name or address with an optional port, and nothing else", () => {
  expect(tryParseHost("Example.ORG:80")).toEqual({ name: "example.org", port: "80" });
  expect(tryParseHost("[::1]:3923")).toEqual({ name: "::1", port: "3923" });
  expect(tryParseHost("127.0.0.1")).toEqual({ name: "127.0.0.1", port: "" });
  const garbage = [
    "",
    " ",
    "a b",
    "a,b",
    "a/b",
    "a?b",
    "a#b",
    "a\\b",
    "user@host",
    "a:b",
    "a:",
    "a:123456",
    "::1",
    "[::1",
    "[::1]x",
    "[::g]",
    "[1.2.3.4]",
    "[::1%25lo]",
    "a\u0000b",
    "h\u00f6st",
    "http://a",
  ];
  expect(garbage.filter((host) => tryParseHost(host) !== undefined)).toEqual([]);
});

Deno.test("toClientKey() counts an IPv6 client by its /64 and a mapped one by its IPv4 address", () => {
  expect(toClientKey("2001:db8:1:2:3:4:5:6")).toBe(toClientKey("2001:db8:1:2::9"));
  expect(toClientKey("2001:db8:1:2::9")).not.toBe(toClientKey("2001:db8:1:3::9"));
  expect(toClientKey("::ffff:192.0.2.1")).toBe(toClientKey("192.0.2.1"));
});

const octet = fc.integer({ min: 0, max: 255 });
const word = fc.integer({ min: 0, max: 0xffff });

law(
  "toCanonicalAddress() gives one spelling to all spellings of an IPv4 address",
  fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
    const dotted = octets.join(".");
    const hex = octets.map((byte) => byte.toString(16).padStart(2, "0"));
    const mapped = `::ffff:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`;
    expect(new Set([dotted, mapped, `::ffff:${dotted}`, `[${mapped}]`].map(toCanonicalAddress)).size).toBe(1);
    expect(isLoopbackAddress(mapped)).toBe(octets[0] === 127);
  }),
);

law(
  "toCanonicalAddress() gives one spelling to all spellings of an IPv6 address",
  fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), (words) => {
    const full = words.map((each) => each.toString(16).padStart(4, "0")).join(":");
    const short = new URL(`http://[${full}]/`).hostname;
    expect(toCanonicalAddress(full.toUpperCase())).toBe(toCanonicalAddress(short));
    expect(isIpLiteral(short)).toBe(true);
  }),
);

law(
  "no text makes an address reader throw",
  fc.property(fc.string(), (text) => {
    for (
      const read of [
        toPlainAddress,
        toCanonicalAddress,
        isIpLiteral,
        isLoopbackName,
        tryParseHost,
        toClientKey,
      ]
    ) {
      expect(() => read(text)).not.toThrow();
    }
  }),
);
