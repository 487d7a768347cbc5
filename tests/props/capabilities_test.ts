import { hash } from "node:crypto";
import { parsePlainPath, parseTargetPath } from "../../base/paths.ts";
import { DEFAULT_MAX_TTL_MS, parseGrant } from "../../caps/grant.ts";
import { AppError } from "../../base/errors.ts";
import { isVerb, VERBS } from "../../caps/model.ts";
import { decide } from "../../caps/policy.ts";
import { sha256Hex } from "../../caps/sha256.ts";
import { expect } from "../helpers/expect.ts";
import { fc, law } from "../helpers/laws.ts";

const NOW = 1_800_000_000_000;
const ascii = fc.string({ unit: "binary-ascii", maxLength: 60 });

law(
  "sha256Hex() agrees with the platform on one block and refuses more",
  fc.property(ascii, (text) => {
    expect(sha256Hex(text)).toBe(text.length > 55 ? undefined : hash("sha256", text, "hex"));
  }),
  5000,
);

const piece = fc.constantFrom(
  "a",
  "b",
  "ab",
  "..",
  ".",
  "",
  "%2e%2e",
  "%2F",
  ".string",
  ".String",
  "%61",
  "a%62",
  "\\",
);
const target = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join("/"));
const prefix = fc.array(fc.constantFrom("a", "b", "ab", ".string"), { maxLength: 3 });
const time = fc.oneof(fc.constant(NOW), fc.integer({ min: NOW - 5, max: NOW + 5 }), fc.constant(Number.NaN));
const death = fc.option(fc.nat(), { nil: null });

law(
  "decide() never allows a dead capability, another verb or a path outside the prefix",
  fc.property(
    prefix,
    target,
    fc.subarray([...VERBS]),
    fc.constantFrom(...VERBS, "EXEC"),
    time,
    death,
    death,
    (segments, raw, verbs, verb, expiresAtMs, consumedAtMs, revokedAtMs) => {
      const scope = parsePlainPath(segments.join("/"));
      if (!scope.ok) throw new TypeError(scope.message);
      const decision = decide(
        {
          tokenId: "cap_a",
          secretHash: "",
          agentId: "eve",
          incarnation: "inc_1",
          pathPrefix: scope.path,
          verbs: new Set(verbs),
          author: "outside",
          singleUse: false,
          createdAtMs: 0,
          expiresAtMs,
          consumedAtMs,
          revokedAtMs,
        },
        verb,
        parseTargetPath(raw),
        NOW,
      );
      if (!decision.ok) return;
      const path = decision.path.split("/");
      expect(expiresAtMs > NOW && consumedAtMs === null && revokedAtMs === null).toBe(true);
      expect((verbs as string[]).includes(verb)).toBe(true);
      expect(path.slice(0, segments.length)).toEqual(segments.length === 0 ? [] : segments);
      expect(path.includes("..") || path[0]?.toLowerCase() === ".string").toBe(false);
    },
  ),
  5000,
);

law(
  "parseGrant() gives a grant that the verifier could have been given, or says invalid_request",
  fc.property(
    fc.record({
      path_prefix: fc.oneof(target, fc.anything()),
      verbs: fc.oneof(
        fc.array(fc.oneof(fc.constantFrom(...VERBS, "get", "EXEC"), fc.string())),
        fc.anything(),
      ),
      ttl_ms: fc.oneof(fc.double(), fc.integer(), fc.anything()),
      single_use: fc.oneof(fc.boolean(), fc.anything()),
    }, { requiredKeys: [] }),
    (input) => {
      try {
        const grant = parseGrant(input, { maxTtlMs: DEFAULT_MAX_TTL_MS, operator: false });
        expect(grant.verbs.length > 0 && grant.verbs.every(isVerb)).toBe(true);
        expect(Number.isSafeInteger(grant.ttlMs) && grant.ttlMs >= 1 && grant.ttlMs <= DEFAULT_MAX_TTL_MS)
          .toBe(true);
        expect(parsePlainPath(grant.pathPrefix)).toEqual({ ok: true, path: grant.pathPrefix });
        expect(grant.author).toBe("outside");
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        expect(error.code).toBe("invalid_request");
      }
    },
  ),
);
