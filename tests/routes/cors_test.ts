/** Pages of other origins: nothing unless the operator listed them, and then the byte routes only (report 56). */
import { type Row, testRows } from "./rows.ts";

const LISTED = "https://app.example";
const preflight = {
  method: "OPTIONS",
  path: "/fs/x",
  as: "nobody",
  headers: {
    origin: LISTED,
    "access-control-request-method": "PUT",
    "access-control-request-headers": "content-type",
  },
} as const;

const on: Row[] = [
  {
    name: "a preflight of a listed origin is answered without a secret",
    rules: ["report 56"],
    request: preflight,
    expect: {
      status: 204,
      headers: {
        "access-control-allow-origin": LISTED,
        "access-control-allow-methods": /PUT/,
        "access-control-allow-headers": /Content-Type/i,
        vary: /Origin/,
      },
    },
  },
  {
    name: "a preflight of another origin gets no permission",
    rules: ["report 56"],
    request: { ...preflight, headers: { ...preflight.headers, origin: "https://evil.example" } },
    expect: {
      status: 204,
      headers: { "access-control-allow-origin": null, "access-control-allow-methods": null, vary: /Origin/ },
    },
  },
  {
    name: "a PUT of a listed origin lets the page read the version",
    rules: ["report 56"],
    request: { method: "PUT", path: "/fs/x", as: "presigned", body: "x", headers: { origin: LISTED } },
    expect: {
      status: 201,
      headers: {
        "access-control-allow-origin": LISTED,
        "access-control-expose-headers": /ETag.*Content-Length.*Content-Range/,
        "access-control-allow-credentials": null,
        vary: /Origin/,
      },
    },
    disk: { x: "x" },
  },
  {
    name: "a refusal to a listed origin can be read by the page",
    rules: ["report 56"],
    request: { method: "GET", path: "/fs/none", as: "presigned", headers: { origin: LISTED } },
    expect: { status: 404, reason: "not_found", headers: { "access-control-allow-origin": LISTED } },
  },
  {
    name: "a GET of another origin is served, unreadable to the page",
    rules: ["design: guard"],
    files: { x: "1" },
    request: { method: "GET", path: "/fs/x", as: "presigned", headers: { origin: "https://evil.example" } },
    expect: { status: 200, headers: { "access-control-allow-origin": null, vary: /Origin/ } },
  },
  {
    name: "an admin route gives a listed origin nothing",
    rules: ["report 49"],
    request: { method: "GET", path: "/agents", headers: { origin: LISTED } },
    expect: { status: 403, reason: "cross_site", headers: { "access-control-allow-origin": null } },
  },
  {
    name: "a preflight on an admin route is 405",
    rules: ["report 49"],
    request: { ...preflight, path: "/agents" },
    expect: { status: 405, reason: "method_not_allowed", headers: { "access-control-allow-origin": null } },
  },
];

const off: Row[] = [
  {
    name: "a preflight is 405 unless CORS is configured",
    rules: ["report 56"],
    request: preflight,
    expect: { status: 405, reason: "method_not_allowed", headers: { "access-control-allow-origin": null } },
  },
  {
    name: "a GET carries no CORS header unless configured",
    rules: ["report 56"],
    files: { x: "1" },
    request: { method: "GET", path: "/fs/x", as: "presigned", headers: { origin: LISTED } },
    expect: {
      status: 200,
      headers: { "access-control-allow-origin": null, "access-control-expose-headers": null },
    },
  },
];

testRows("CORS where an origin is listed", on, { flags: { corsOrigin: [LISTED] } });
testRows("CORS where none is listed", off);
