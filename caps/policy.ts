/**
 * The one function that decides: capability, verb, path → the grant, or the one refusal.
 *
 * Pure: no clock, no I/O. It never opens anything and never spends anything. Source: System API, "Status
 * semantics"; SYS-ERR-04; architecture.md "Capabilities".
 */
import type { ErrorCode } from "../base/errors.ts";
import { type CanonicalPath, covers, isReserved, type PathResult, RESERVED_SEGMENT } from "../base/paths.ts";
import { type Capability, isVerb, statusOf, type Verb, VERBS } from "./model.ts";
import { redact } from "./secret.ts";

/** A request that is refused: the code to answer with, and a sentence without any secret. */
export interface Refusal {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
}

/** A request that a capability allows, on exactly this path. */
export interface Permission {
  readonly ok: true;
  readonly capability: Capability;
  readonly path: CanonicalPath;
}

/** What `decide` says. */
export type Decision = Permission | Refusal;

function refuse(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}

/**
 * Says why a capability is dead at `nowMs`, or undefined while it lives.
 *
 * `capability` is undefined when no record has the hash of the secret.
 */
export function refuseDead(capability: Capability | undefined, nowMs: number): Refusal | undefined {
  if (capability === undefined) {
    return refuse("unknown_token", "Cannot use this capability: no capability has this secret");
  }
  switch (statusOf(capability, nowMs)) {
    case "live":
      return undefined;
    case "consumed":
      return refuse(
        "already_used",
        "Cannot use this capability: it was for a single use and is already used",
      );
    case "revoked":
      return refuse("revoked", "Cannot use this capability: it was revoked");
    case "expired":
      return refuse("expired", "Cannot use this capability: it has expired");
  }
}

/** Names a path in a sentence; a secret that was pasted into the path is not repeated. */
function show(path: CanonicalPath): string {
  return `"${redact(path)}"`;
}

/**
 * Decides whether a capability allows one request.
 *
 * Checks in the order of SYS-ERR-04: alive, path legal, verb, subtree; a caller without a live capability learns
 * nothing about paths. Prefixes match whole segments (`a/b` covers `a/b/c`, never `a/bc`), and `.string` is outside
 * every grant.
 *
 * @param capability The stored record, or undefined when there is none for the secret.
 * @param verb What will be done (`HEAD` arrives as `STAT`). Anything outside `VERBS` is refused, whatever a record says.
 * @param target What `base/paths.ts` made of the request's path.
 * @param nowMs Unix milliseconds at which the request began.
 * @returns The permission with the canonical path to use, or the refusal to answer with.
 */
export function decide(
  capability: Capability | undefined,
  verb: string,
  target: PathResult,
  nowMs: number,
): Decision {
  const dead = refuseDead(capability, nowMs);
  if (dead !== undefined || capability === undefined) {
    return dead ?? refuse("unknown_token", "Cannot use this capability");
  }
  if (!target.ok) return refuse("invalid_path", target.message);
  const { path } = target;
  if (!isVerb(verb) || !capability.verbs.has(verb)) {
    const granted = VERBS.filter((known) => capability.verbs.has(known)).join(", ") || "nothing";
    return refuse("verb_not_allowed", `Cannot ${verb}: this capability allows ${granted}`);
  }
  if (isReserved(path)) {
    return refuse(
      "path_outside_scope",
      `Cannot ${verb} ${show(path)}: "${RESERVED_SEGMENT}" is outside every capability`,
    );
  }
  if (!covers(capability.pathPrefix, path)) {
    const scope = show(capability.pathPrefix);
    return refuse(
      "path_outside_scope",
      `Cannot ${verb} ${show(path)}: this capability covers ${scope} alone`,
    );
  }
  return { ok: true, capability, path };
}

/**
 * Returns whether a success of `verb` spends this capability.
 *
 * PUT, GET and DELETE do when it is for a single use; STAT only when it is the sole verb, so that looking first never
 * costs the download. Source: architecture.md "Capabilities"; report 1.
 */
export function isSpentBy(capability: Capability, verb: Verb): boolean {
  return capability.singleUse && (verb !== "STAT" || capability.verbs.size === 1);
}
