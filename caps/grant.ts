/**
 * What may be minted: the shape of a grant on the wire, and the one parser that accepts it.
 *
 * Pure: no clock, no I/O. Nothing outside the four verbs of the system plane can get through. Source: SYS-CAP-01,
 * SYS-CAP-02; reports 4, 8, 19.
 */
import * as v from "valibot";
import { AGENT_ID_RULE, isAgentId } from "../base/agent_id.ts";
import { AppError } from "../base/errors.ts";
import { type CanonicalPath, isReserved, parsePlainPath, RESERVED_SEGMENT } from "../base/paths.ts";
import { isVerb, type Verb, VERBS } from "./model.ts";
import { redact } from "./secret.ts";

/** The longest life of a capability unless configured otherwise: 366 days. */
export const DEFAULT_MAX_TTL_MS = 366 * 24 * 60 * 60 * 1000;

/** A grant that may be minted: checked, normalised, not yet bound to an agent. */
export interface Grant {
  readonly pathPrefix: CanonicalPath;
  /** Without duplicates, in the order of `VERBS`. */
  readonly verbs: readonly Verb[];
  readonly ttlMs: number;
  readonly singleUse: boolean;
  readonly author: "outside" | "agent";
}

/** How a grant is read. */
export interface GrantOptions {
  /** Upper bound of `ttl_ms`, as `/describe` shows it. */
  maxTtlMs: number;
  /** Whether the operator asks; only then `"author": "agent"` is taken. */
  operator: boolean;
}

const SPELLINGS = [...VERBS, ...VERBS.map((verb) => verb.toLowerCase())];
const VERB_LIST = "PUT, GET, DELETE or STAT";

/** Shows a refused value in a sentence: short, on one line, without anything that looks like a secret. */
function show(value: unknown): string {
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "string") return typeof value === "object" ? "an object" : "nothing";
  const text = redact(value);
  return JSON.stringify(text.length > 40 ? text.slice(0, 40) + "…" : text);
}

function showVerb(value: unknown): string {
  return typeof value === "string" && /^[A-Za-z]{1,20}$/.test(value) ? value : show(value);
}

interface FieldIssue {
  readonly expected: string | null;
  readonly path?: readonly { readonly key: unknown }[] | undefined;
}

/** Says which field is missing or unknown, and what the fields are. */
function explainFields(fields: object): (issue: FieldIssue) => string {
  const known = Object.keys(fields).join(", ");
  return ({ expected, path }) => {
    const name = path?.at(-1)?.key;
    if (name === undefined) return "it must be a JSON object";
    if (expected === "never") return `unknown field ${show(name)}; the fields are ${known}`;
    return `${String(name)} is missing; the fields are ${known}`;
  };
}

function grantFields(maxTtlMs: number) {
  const ttl = ({ input }: { input: unknown }) =>
    `ttl_ms must be an integer from 1 to ${maxTtlMs}, got ${show(input)}`;
  return {
    path_prefix: v.pipe(
      v.string(({ input }) => `path_prefix must be a string, got ${show(input)}`),
      v.description('Subtree of the workspace, in whole segments; "" is all of it.'),
    ),
    verbs: v.pipe(
      v.array(
        v.picklist(
          SPELLINGS,
          ({ input }) => `${showVerb(input)} is not on the system plane; use ${VERB_LIST}`,
        ),
        ({ input }) => `verbs must be a list of ${VERB_LIST}, got ${show(input)}`,
      ),
      v.minLength(1, `verbs must name at least one of ${VERB_LIST}`),
      v.description("What may be done, in upper or lower case."),
    ),
    ttl_ms: v.pipe(
      v.number(ttl),
      v.integer(ttl),
      v.minValue(1, ttl),
      v.maxValue(maxTtlMs, ttl),
      v.description("How long it lives, in milliseconds."),
    ),
    single_use: v.optional(v.pipe(
      v.boolean(({ input }) => `single_use must be true or false, got ${show(input)}`),
      v.description("Whether the first success is the only one."),
    )),
    author: v.optional(v.pipe(
      v.literal("agent", ({ input }) => `author can only be "agent", got ${show(input)}`),
      v.description("Operator only: what is written counts as the agent's own and gets no mark."),
    )),
  };
}

function mintFields(maxTtlMs: number) {
  return {
    agent_id: v.pipe(
      v.string(({ input }) => `agent_id must be a string, got ${show(input)}`),
      v.check(isAgentId, ({ input }) => `agent_id must be ${AGENT_ID_RULE}, got ${show(input)}`),
      v.description("The agent whose workspace it opens."),
    ),
    ...grantFields(maxTtlMs),
  };
}

/**
 * Returns the schema of the `capability` inside `POST /agents`, for checking and for the OpenAPI document.
 *
 * What JSON Schema cannot say (a canonical path, who may name an author) `parseGrant` checks on top.
 */
export function grantSchema(maxTtlMs: number) {
  const fields = grantFields(maxTtlMs);
  return v.strictObject(fields, explainFields(fields));
}

/** Returns the schema of the body of `POST /capabilities`: a grant and the agent it is for. */
export function mintRequestSchema(maxTtlMs: number) {
  const fields = mintFields(maxTtlMs);
  return v.strictObject(fields, explainFields(fields));
}

type GrantInput = v.InferOutput<ReturnType<typeof grantSchema>>;

function refuse(message: string): AppError {
  return new AppError("invalid_request", `Cannot mint capability: ${message}`);
}

function checkShape<Schema extends v.GenericSchema>(schema: Schema, input: unknown): v.InferOutput<Schema> {
  // A list passes for an object with missing fields, which would be a puzzling answer.
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw refuse("it must be a JSON object");
  }
  const result = v.safeParse(schema, input, { abortEarly: true });
  if (!result.success) throw refuse(result.issues[0].message);
  return result.output;
}

function toGrant(input: GrantInput, { operator }: GrantOptions): Grant {
  const prefix = parsePlainPath(input.path_prefix);
  if (!prefix.ok) throw refuse(`path_prefix is refused. ${prefix.message}`);
  if (isReserved(prefix.path)) {
    throw refuse(`path_prefix is refused. "${RESERVED_SEGMENT}" is outside every capability`);
  }
  const asked = new Set(input.verbs.map((verb) => verb.toUpperCase()).filter(isVerb));
  if (input.author === "agent" && !operator) {
    throw new AppError(
      "admin_required",
      'Cannot mint capability: only the operator may set author to "agent"',
    );
  }
  return {
    pathPrefix: prefix.path,
    verbs: VERBS.filter((verb) => asked.has(verb)),
    ttlMs: input.ttl_ms,
    singleUse: input.single_use ?? false,
    author: input.author ?? "outside",
  };
}

/**
 * Parses the `capability` inside `POST /agents`, where the agent is named outside of it.
 *
 * Throws AppError `invalid_request` with a sentence that names the field (SYS-CAP-02), or `admin_required` for an
 * `author` that is not the caller's to set.
 */
export function parseGrant(input: unknown, options: GrantOptions): Grant {
  return toGrant(checkShape(grantSchema(options.maxTtlMs), input), options);
}

/** Parses the body of `POST /capabilities`; refuses as `parseGrant` does, and an `agent_id` that can be none. */
export function parseMintRequest(input: unknown, options: GrantOptions): { agentId: string; grant: Grant } {
  const { agent_id, ...rest } = checkShape(mintRequestSchema(options.maxTtlMs), input);
  return { agentId: agent_id, grant: toGrant(rest, options) };
}
