import { toJsonSchema } from "@valibot/to-json-schema";
import { AppError } from "../../base/errors.ts";
import {
  DEFAULT_MAX_TTL_MS,
  grantSchema,
  mintRequestSchema,
  parseGrant,
  parseMintRequest,
} from "../../caps/grant.ts";
import { createCapabilitySecret } from "../../caps/secret.ts";
import { expect } from "../helpers/expect.ts";

const OPERATOR = { maxTtlMs: DEFAULT_MAX_TTL_MS, operator: true };
const AGENT = { maxTtlMs: DEFAULT_MAX_TTL_MS, operator: false };
const GOOD = { path_prefix: "inbox/discord", verbs: ["PUT", "STAT"], ttl_ms: 3_600_000 };

/** The refusal of a grant, as code and message. */
function refusal(parse: () => unknown): { code: string; message: string } {
  try {
    const grant = parse();
    return { code: "accepted", message: JSON.stringify(grant) };
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, message: error.message };
    throw error;
  }
}

Deno.test("parseGrant() gives the normalised grant", () => {
  expect(parseGrant(GOOD, AGENT)).toEqual({
    pathPrefix: "inbox/discord",
    verbs: ["PUT", "STAT"],
    ttlMs: 3_600_000,
    singleUse: false,
    author: "outside",
  });
});

const prefixes: [given: string, kept: string][] = [
  ["", ""],
  ["/", ""],
  ["./", ""],
  ["/inbox//discord/./", "inbox/discord"],
  ["보고서 über 100%", "보고서 über 100%"],
  ["%2e%2e", "%2e%2e"],
  [".stringent", ".stringent"],
  ["a/.string", "a/.string"],
];
Deno.test("parseGrant() normalises path_prefix (SYS-CAP-01)", () => {
  for (const [given, kept] of prefixes) {
    expect(parseGrant({ ...GOOD, path_prefix: given }, AGENT).pathPrefix).toBe(kept);
  }
});

const verbs: [given: string[], kept: string[]][] = [
  [["put", "stat"], ["PUT", "STAT"]],
  [["STAT", "DELETE", "GET", "PUT"], ["PUT", "GET", "DELETE", "STAT"]],
  [["get", "GET", "GET"], ["GET"]],
];
Deno.test("parseGrant() folds spellings and duplicates of verbs into the order of VERBS", () => {
  for (const [given, kept] of verbs) expect(parseGrant({ ...GOOD, verbs: given }, AGENT).verbs).toEqual(kept);
});

/** What is wrong, the JSON text as it would arrive, and what the message must say. */
const refused: [name: string, json: string, says: string][] = [
  ["no object", "null", "must be a JSON object"],
  ["a list", "[]", "must be a JSON object"],
  ["a text", '"x"', "must be a JSON object"],
  ["nothing in it", "{}", "path_prefix is missing"],
  ["no verbs field", '{"path_prefix":"a","ttl_ms":1}', "verbs is missing"],
  ["no ttl_ms", '{"path_prefix":"a","verbs":["GET"]}', "ttl_ms is missing"],
  [
    "an unknown field",
    JSON.stringify({ ...GOOD, ttl: 1 }),
    'unknown field "ttl"; the fields are path_prefix, verbs,',
  ],
  ["an agent_id inside a pairing", JSON.stringify({ ...GOOD, agent_id: "eve" }), 'unknown field "agent_id"'],
  [
    "__proto__",
    JSON.stringify(GOOD).replace("{", '{"__proto__":{"author":"agent"},'),
    'unknown field "__proto__"',
  ],
  ["constructor", JSON.stringify({ ...GOOD, constructor: 1 }), 'unknown field "constructor"'],
  ["toString", JSON.stringify({ ...GOOD, toString: 1 }), 'unknown field "toString"'],
  [
    "EXEC",
    JSON.stringify({ ...GOOD, verbs: ["GET", "EXEC"] }),
    "EXEC is not on the system plane; use PUT, GET, DELETE or STAT",
  ],
  ["exec", JSON.stringify({ ...GOOD, verbs: ["exec"] }), "exec is not on the system plane"],
  ["mixed case", JSON.stringify({ ...GOOD, verbs: ["Put"] }), "Put is not on the system plane"],
  ["a padded verb", JSON.stringify({ ...GOOD, verbs: ["GET "] }), '"GET " is not on the system plane'],
  [
    "a verb of Turkish case",
    JSON.stringify({ ...GOOD, verbs: ["ſtat"] }),
    '"ſtat" is not on the system plane',
  ],
  ["a number as verb", JSON.stringify({ ...GOOD, verbs: [1] }), "1 is not on the system plane"],
  [
    "verbs as text",
    JSON.stringify({ ...GOOD, verbs: "put,stat" }),
    'verbs must be a list of PUT, GET, DELETE or STAT, got "put,stat"',
  ],
  ["no verbs", JSON.stringify({ ...GOOD, verbs: [] }), "verbs must name at least one"],
  [
    "path_prefix as number",
    JSON.stringify({ ...GOOD, path_prefix: 1 }),
    "path_prefix must be a string, got 1",
  ],
  [
    "path_prefix null",
    JSON.stringify({ ...GOOD, path_prefix: null }),
    "path_prefix must be a string, got null",
  ],
  ["an escaping prefix", JSON.stringify({ ...GOOD, path_prefix: "a/../b" }), "it has a '..' segment"],
  ["a backslash", JSON.stringify({ ...GOOD, path_prefix: "a\\b" }), "it has a backslash"],
  ["a NUL", JSON.stringify({ ...GOOD, path_prefix: "a\0b" }), "it has a NUL character"],
  ["a lone surrogate", JSON.stringify({ ...GOOD, path_prefix: "a\ud800" }), "it is not valid Unicode"],
  ["a long segment", JSON.stringify({ ...GOOD, path_prefix: "ü".repeat(128) }), "longer than 255 bytes"],
  [
    "String's own folder",
    JSON.stringify({ ...GOOD, path_prefix: "/.string/packages" }),
    '".string" is outside',
  ],
  [
    "String's own folder in capitals",
    JSON.stringify({ ...GOOD, path_prefix: ".String" }),
    '".string" is outside',
  ],
  [
    "single_use as text",
    JSON.stringify({ ...GOOD, single_use: "yes" }),
    'single_use must be true or false, got "yes"',
  ],
  [
    "single_use as number",
    JSON.stringify({ ...GOOD, single_use: 1 }),
    "single_use must be true or false, got 1",
  ],
  [
    "single_use null",
    JSON.stringify({ ...GOOD, single_use: null }),
    "single_use must be true or false, got null",
  ],
  [
    "another author",
    JSON.stringify({ ...GOOD, author: "outside" }),
    'author can only be "agent", got "outside"',
  ],
];
for (const [name, json, says] of refused) {
  Deno.test(`parseGrant() answers invalid_request for ${name} (SYS-CAP-02)`, () => {
    const { code, message } = refusal(() => parseGrant(JSON.parse(json), OPERATOR));
    expect(code, message).toBe("invalid_request");
    expect(message).toContain(says);
    expect(message.startsWith("Cannot mint capability: ")).toBe(true);
  });
}

const ttls: [json: string, shown: string][] = [
  ['"NaN"', '"NaN"'],
  ['"1h"', '"1h"'],
  ['"3600000"', '"3600000"'],
  ["null", "null"],
  ["true", "true"],
  ["[1]", "a list"],
  ["{}", "an object"],
  ["-1", "-1"],
  ["0", "0"],
  ["-0", "0"],
  ["1e400", "Infinity"],
  ["-1e400", "-Infinity"],
  ["9e15", "9000000000000000"],
  ["1.5", "1.5"],
  ["1e-9", "1e-9"],
  [String(DEFAULT_MAX_TTL_MS + 1), String(DEFAULT_MAX_TTL_MS + 1)],
];
for (const [json, shown] of ttls) {
  Deno.test(`parseGrant() refuses a ttl_ms of ${json} (report 4)`, () => {
    const text = JSON.stringify(GOOD).replace('"ttl_ms":3600000', `"ttl_ms":${json}`);
    expect(refusal(() => parseGrant(JSON.parse(text), OPERATOR))).toEqual({
      code: "invalid_request",
      message:
        `Cannot mint capability: ttl_ms must be an integer from 1 to ${DEFAULT_MAX_TTL_MS}, got ${shown}`,
    });
  });
}

Deno.test("parseGrant() refuses NaN itself and keeps the bounds (report 4)", () => {
  expect(refusal(() => parseGrant({ ...GOOD, ttl_ms: Number.NaN }, OPERATOR)).message).toContain("got NaN");
  expect(parseGrant({ ...GOOD, ttl_ms: 1 }, AGENT).ttlMs).toBe(1);
  expect(parseGrant({ ...GOOD, ttl_ms: DEFAULT_MAX_TTL_MS }, AGENT).ttlMs).toBe(31_622_400_000);
  expect(refusal(() => parseGrant({ ...GOOD, ttl_ms: 11 }, { maxTtlMs: 10, operator: true })).message)
    .toContain("from 1 to 10, got 11");
});

Deno.test("parseGrant() gives author to the operator alone", () => {
  expect(parseGrant({ ...GOOD, author: "agent" }, OPERATOR).author).toBe("agent");
  expect(refusal(() => parseGrant({ ...GOOD, author: "agent" }, AGENT)).code).toBe("admin_required");
});

Deno.test("parseGrant() never repeats a secret that was put into the wrong field (SYS-ERR-03)", () => {
  const { secret } = createCapabilitySecret();
  const misplaced = [
    { ...GOOD, ttl_ms: secret },
    { ...GOOD, verbs: [secret] },
    { ...GOOD, verbs: secret },
    { ...GOOD, single_use: secret },
    { ...GOOD, author: secret },
    { ...GOOD, [secret]: 1 },
    { ...GOOD, path_prefix: `../${secret}` },
  ];
  for (const input of misplaced) {
    const { code, message } = refusal(() => parseGrant(input, OPERATOR));
    expect(code).toBe("invalid_request");
    expect(message).not.toContain(secret.slice(5, 25));
  }
});

Deno.test("parseMintRequest() wants an agent_id that can be one (SYS-AG-02)", () => {
  expect(parseMintRequest({ agent_id: "eve", ...GOOD }, AGENT)).toMatchObject({
    agentId: "eve",
    grant: { pathPrefix: "inbox/discord" },
  });
  expect(refusal(() => parseMintRequest(GOOD, AGENT)).message).toContain("agent_id is missing");
  for (const agent_id of ["", "..", "a..b", "Eve", "a/b", "a\0", "eve ", "-rf", "x".repeat(65)]) {
    const { code, message } = refusal(() => parseMintRequest({ ...GOOD, agent_id }, AGENT));
    expect(code, agent_id).toBe("invalid_request");
    expect(message).toContain("agent_id must be");
  }
  for (const agent_id of [1, null, ["eve"], { id: "eve" }]) {
    expect(refusal(() => parseMintRequest({ ...GOOD, agent_id }, AGENT)).message).toContain(
      "must be a string",
    );
  }
});

Deno.test("the schemas of a grant become JSON Schema, closed and bounded", () => {
  const options = { errorMode: "ignore" } as const;
  const grant = toJsonSchema(grantSchema(1000), options);
  expect(grant).toMatchObject({
    type: "object",
    required: ["path_prefix", "verbs", "ttl_ms"],
    additionalProperties: false,
    properties: { ttl_ms: { type: "integer", minimum: 1, maximum: 1000 }, single_use: { type: "boolean" } },
  });
  expect(toJsonSchema(mintRequestSchema(1000), options).required).toContain("agent_id");
});
