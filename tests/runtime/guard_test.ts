import { AppError } from "../../base/errors.ts";
import { Guard } from "../../runtime/guard.ts";
import { expect } from "../helpers/expect.ts";

const plain = new Guard({ allowedHosts: [] });
const named = new Guard({
  allowedHosts: ["box.lan", "odd.lan:8080"],
  publicUrl: "https://string.example/base",
});

function codeOf(run: () => void): string {
  try {
    run();
    return "passes";
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

function page(guard: Guard, headers: Record<string, string>): string {
  return codeOf(() => guard.refuseForeignPage((name) => headers[name] ?? null));
}

Deno.test("isOwnHost() knows addresses, loopback names and configured names (report 49)", () => {
  for (
    const host of [
      "127.0.0.1",
      "127.0.0.1:3923",
      "localhost",
      "LocalHost:1",
      "[::1]:3923",
      "192.168.1.7",
      "10.0.0.1:80",
    ]
  ) {
    expect(plain.isOwnHost(host), host).toBe(true);
  }
  for (
    const host of [
      "evil.example",
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "localhost.",
      "",
      "a b",
      "evil.example:127.0.0.1",
      "127.0.0.1@evil.example",
      "0x7f000001",
      "string.example",
    ]
  ) expect(plain.isOwnHost(host), host).toBe(false);
  expect(plain.isOwnHost(null)).toBe(false);
  for (const host of ["box.lan", "BOX.lan:3923", "odd.lan:8080", "string.example", "string.example:443"]) {
    expect(named.isOwnHost(host), host).toBe(true);
  }
  for (const host of ["box.lan.evil.example", "xbox.lan", "odd.lan:8081", "other.example"]) {
    expect(named.isOwnHost(host), host).toBe(false);
  }
});

Deno.test("refuseForeignHost() throws host_not_allowed for a foreign Host (report 49)", () => {
  expect(codeOf(() => plain.refuseForeignHost("evil.example"))).toBe("host_not_allowed");
  expect(codeOf(() => plain.refuseForeignHost("localhost:3923"))).toBe("passes");
});

Deno.test("refuseForeignPage() refuses pages of other origins and sites (report 49)", () => {
  const rows: [Record<string, string>, string][] = [
    [{}, "passes"],
    [{ "sec-fetch-mode": "cors" }, "passes"],
    [{ "sec-fetch-site": "same-origin" }, "passes"],
    [{ "sec-fetch-site": "none" }, "passes"],
    [{ "sec-fetch-site": "same-site" }, "cross_site"],
    [{ "sec-fetch-site": "cross-site" }, "cross_site"],
    [{ "sec-fetch-site": "" }, "cross_site"],
    [{ origin: "http://evil.example" }, "cross_site"],
    [{ origin: "null" }, "cross_site"],
    [{ origin: "http://127.0.0.1:3923", host: "127.0.0.1:3923" }, "passes"],
    [{ origin: "http://127.0.0.1:4000", host: "127.0.0.1:3923" }, "cross_site"],
    [{ origin: "http://evil.example", host: "evil.example" }, "cross_site"],
    [{ origin: "http://localhost:3923", host: "127.0.0.1:3923" }, "cross_site"],
  ];
  for (const [headers, outcome] of rows) expect([headers, page(plain, headers)]).toEqual([headers, outcome]);
});

Deno.test("refuseForeignPage() lets the public origin in, whatever the Host behind a proxy says", () => {
  expect(page(named, { origin: "https://string.example", host: "127.0.0.1:3923" })).toBe("passes");
  expect(page(named, { origin: "http://string.example", host: "127.0.0.1:3923" })).toBe("cross_site");
  expect(page(named, { origin: "https://string.example.evil", host: "127.0.0.1:3923" })).toBe("cross_site");
  expect(page(named, { origin: "https://box.lan", host: "box.lan" })).toBe("passes");
});
