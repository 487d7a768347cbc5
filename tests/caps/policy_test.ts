import { parsePlainPath, parseTargetPath } from "../../base/paths.ts";
import { ERRORS } from "../../base/errors.ts";
import { type Capability, type Verb, VERBS } from "../../caps/model.ts";
import { decide, isSpentBy } from "../../caps/policy.ts";
import { createCapabilitySecret } from "../../caps/secret.ts";
import { expect } from "../helpers/expect.ts";

const NOW = 1_800_000_000_000;

function capability(
  fields: Partial<Omit<Capability, "pathPrefix">> & { pathPrefix?: string } = {},
): Capability {
  const prefix = parsePlainPath(fields.pathPrefix ?? "in/discord");
  if (!prefix.ok) throw new TypeError(prefix.message);
  return {
    tokenId: "cap_0123456789abcdef",
    secretHash: createCapabilitySecret().secretHash,
    agentId: "eve",
    incarnation: "inc_1",
    verbs: new Set(VERBS),
    author: "outside",
    singleUse: false,
    createdAtMs: NOW - 1000,
    expiresAtMs: NOW + 1000,
    consumedAtMs: null,
    revokedAtMs: null,
    ...fields,
    pathPrefix: prefix.path,
  };
}

const verbSets: Verb[][] = Array.from(
  { length: 2 ** VERBS.length },
  (_, bits) => VERBS.filter((_, index) => (bits >> index & 1) === 1),
);

Deno.test("decide() allows a verb exactly when the capability has it (all 16 sets of verbs)", () => {
  for (const verbs of verbSets) {
    for (const verb of VERBS) {
      const decision = decide(
        capability({ verbs: new Set(verbs) }),
        verb,
        parseTargetPath("in/discord/a"),
        NOW,
      );
      expect(decision.ok ? "ok" : decision.code).toBe(verbs.includes(verb) ? "ok" : "verb_not_allowed");
    }
  }
});

Deno.test("decide() refuses a verb outside the system plane, whatever a record says (report 7)", () => {
  for (const verb of ["EXEC", "POST", "HEAD", "get", "PATCH", "", "__proto__", "constructor", "PUT,GET"]) {
    const forged = capability({ verbs: new Set([verb as Verb, ...VERBS]) });
    expect(decide(forged, verb, parseTargetPath("in/discord/a"), NOW)).toMatchObject({
      ok: false,
      code: "verb_not_allowed",
    });
  }
});

const scopes: [prefix: string, target: string, expected: string][] = [
  ["", "a", "a"],
  ["", "", ""],
  ["", "a/b/c", "a/b/c"],
  ["in/discord", "in/discord", "in/discord"],
  ["in/discord", "in/discord/", "in/discord"],
  ["in/discord", "in//./discord/x", "in/discord/x"],
  ["in/discord", "%69n/discord/x", "in/discord/x"],
  ["in/discord", "in/discord/.../x", "in/discord/.../x"],
  // report 19: siblings
  ["in/discord", "in/discord_evil/x", "path_outside_scope"],
  ["in/discord", "in/discord./x", "path_outside_scope"],
  ["in/discord", "in/discord../x", "path_outside_scope"],
  ["in/discord", "in/discord/../slack/x", "invalid_path"],
  ["in/discord", "in", "path_outside_scope"],
  ["in/discord", "", "path_outside_scope"],
  ["in/discord", "x/in/discord", "path_outside_scope"],
  // report 8: neighbours of one file
  ["out/report.pdf", "out/report.pdf", "out/report.pdf"],
  ["out/report.pdf", "out/report.pdf/x", "out/report.pdf/x"],
  ["out/report.pdf", "out/report.pdf.bak", "path_outside_scope"],
  ["out/report.pdf", "out/Report.pdf", "path_outside_scope"],
  ["out/report.pdf", "out/report.pdf%20", "path_outside_scope"],
  ["out/report.pdf", "out/report.pd", "path_outside_scope"],
  // Two spellings of one glyph are two names: composed and decomposed.
  ["caf\u00e9", "caf%C3%A9/x", "caf\u00e9/x"],
  ["caf\u00e9", "cafe%CC%81/x", "path_outside_scope"],
  // report 20: traversal in any spelling
  ["in", "in/%2e%2e/%2e%2e/etc/passwd", "invalid_path"],
  ["in", "in/..%2f..%2fetc/passwd", "invalid_path"],
  ["in", "in/..%5c..%5cx", "invalid_path"],
  ["in", "in/%252e%252e/x", "in/%2e%2e/x"],
  // `.string` is outside every grant
  ["", ".string", "path_outside_scope"],
  ["", ".string/packages/x", "path_outside_scope"],
  ["", ".STRING/x", "path_outside_scope"],
  ["", "%2estring/x", "path_outside_scope"],
  [".string", ".string/x", "path_outside_scope"],
  ["", ".stringent/x", ".stringent/x"],
  ["", "a/.string/x", "a/.string/x"],
];

for (const verb of VERBS) {
  Deno.test(`decide() keeps ${verb} inside the subtree, by whole segments (SYS-FS-11, reports 8, 19, 20)`, () => {
    for (const [pathPrefix, target, expected] of scopes) {
      const decision = decide(capability({ pathPrefix }), verb, parseTargetPath(target), NOW);
      expect(decision.ok ? decision.path : decision.code, `${pathPrefix} <- ${target}`).toBe(expected);
    }
  });
}

const deaths: [name: string, record: Capability | undefined, code: string][] = [
  ["unknown", undefined, "unknown_token"],
  ["used", capability({ consumedAtMs: NOW - 1 }), "already_used"],
  ["revoked", capability({ revokedAtMs: NOW - 1 }), "revoked"],
  ["expired at this very millisecond", capability({ expiresAtMs: NOW }), "expired"],
  ["expired long ago", capability({ expiresAtMs: 1 }), "expired"],
  ["of unreadable expiry (report 4)", capability({ expiresAtMs: Number.NaN }), "expired"],
  [
    "used, then revoked and expired",
    capability({ consumedAtMs: 1, revokedAtMs: 2, expiresAtMs: 3 }),
    "already_used",
  ],
  ["revoked, then expired", capability({ revokedAtMs: 2, expiresAtMs: 3 }), "revoked"],
];

for (const [name, record, code] of deaths) {
  Deno.test(`decide() says ${code} for a capability that is ${name}, whatever else is wrong (SYS-ERR-04)`, () => {
    for (const target of ["in/discord/a", "in/..", "elsewhere", ".string/x"]) {
      for (const verb of [...VERBS, "EXEC"]) {
        const decision = decide(record, verb, parseTargetPath(target), NOW);
        expect(decision).toMatchObject({ ok: false, code });
        expect(ERRORS[decision.ok ? "internal" : decision.code].status).toBe(401);
      }
    }
  });
}

Deno.test("decide() keeps the order path, verb, subtree for a live capability (SYS-ERR-04)", () => {
  const getter = capability({ verbs: new Set(["GET"]) });
  expect(decide(getter, "PUT", parseTargetPath("../x"), NOW)).toMatchObject({ code: "invalid_path" });
  expect(decide(getter, "PUT", parseTargetPath("elsewhere"), NOW)).toMatchObject({
    code: "verb_not_allowed",
  });
  expect(decide(getter, "GET", parseTargetPath("elsewhere"), NOW)).toMatchObject({
    code: "path_outside_scope",
  });
});

Deno.test("decide() names the verb and the scope, never the secret's hash", () => {
  const record = capability({ verbs: new Set(["GET", "STAT"]) });
  const verb = decide(record, "PUT", parseTargetPath("in/discord/a"), NOW);
  const scope = decide(record, "GET", parseTargetPath("in/slack/a"), NOW);
  expect(verb).toMatchObject({ message: "Cannot PUT: this capability allows GET, STAT" });
  expect(scope).toMatchObject({
    message: 'Cannot GET "in/slack/a": this capability covers "in/discord" alone',
  });
  expect(JSON.stringify([verb, scope])).not.toContain(record.secretHash);
});

Deno.test("isSpentBy() spares a look ahead unless looking is all that is granted (report 1)", () => {
  for (const verbs of verbSets) {
    for (const verb of verbs) {
      const once = capability({ verbs: new Set(verbs), singleUse: true });
      expect(isSpentBy(once, verb)).toBe(verb !== "STAT" || verbs.length === 1);
      expect(isSpentBy(capability({ verbs: new Set(verbs) }), verb)).toBe(false);
    }
  }
});
