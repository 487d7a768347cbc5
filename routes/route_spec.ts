/** What the table of routes says of one operation. */
import type { GenericSchema } from "valibot";
import type { ErrorCode } from "../base/errors.ts";

/** Who may come in: `operator`, an `agent` by its key, the bearer of a `capability`, of a `webhook` token, anyone. */
export type Auth = "none" | "capability" | "operator" | "operator_or_agent" | "agent" | "webhook";

/** What a route belongs to in `/describe`; a feature is described when at least one route has it. */
export type Feature =
  | "describe"
  | "health"
  | "fs"
  | "capability-tokens"
  | "agents"
  | "agent-keys"
  | "agent-webhooks"
  | "events"
  | "event-stream"
  | "openapi";

/** A parameter in the query or a header; path parameters are in the path. */
export interface Parameter {
  readonly name: string;
  readonly in: "query" | "header";
  readonly description: string;
}

/** One way a route answers when it succeeds. */
export interface Success {
  readonly description: string;
  /** JSON where there is a schema and no media type; several where the client may choose. */
  readonly mediaType?: string | readonly string[];
  readonly schema?: GenericSchema;
}

/** One operation. */
export interface RouteSpec {
  readonly id: string;
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** `{name}` is one segment; `/fs/{path}` takes the rest. */
  readonly path: string;
  readonly auth: Auth;
  readonly feature: Feature;
  readonly summary: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: {
    readonly mediaType: string;
    readonly schema?: GenericSchema | ((maxTtlMs: number) => GenericSchema);
  };
  readonly success: Readonly<Record<number, Success>>;
  /** Reasons of refusals, beside the ones that every route has (`COMMON_ERRORS`). */
  readonly errors: readonly ErrorCode[];
}
