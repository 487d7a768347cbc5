/**
 * The one list of routes.
 *
 * The router, the 405 answers, `/describe` and `/openapi.json` all walk it, and a test calls every route and status in
 * it. Handlers are bound to it by `id`. Source: SYS-DESC-02.
 */
import { mintRequestSchema } from "../caps/grant.ts";
import { ADMIN, CREDENTIAL, FILE, JSON_BODY, SCOPE } from "./refusals.ts";
import type { Parameter, RouteSpec } from "./route_spec.ts";
import * as schemas from "./schemas.ts";

const cap: Parameter = {
  name: "cap",
  in: "query",
  description: "The secret, instead of Authorization (presigned form).",
};
const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  description: "Only if one of these versions is current.",
};
const agentHeader: Parameter = {
  name: "X-Agent-Id",
  in: "header",
  description: "Which agent; needed when the operator calls, and must agree with an agent's key.",
};

/** All routes. */
export const ROUTES = [
  {
    id: "putFile",
    method: "PUT",
    path: "/fs/{path}",
    auth: "capability",
    feature: "fs",
    summary: "Writes bytes: all of them or nothing, durable when answered",
    parameters: [cap, ifMatch, { name: "If-None-Match", in: "header", description: "'*' creates only." }],
    body: { mediaType: "application/octet-stream" },
    success: {
      201: { description: "Created", schema: schemas.putResult },
      200: { description: "Overwritten", schema: schemas.putResult },
    },
    errors: [
      ...CREDENTIAL,
      ...SCOPE,
      ...FILE,
      "too_large",
      "precondition_failed",
      "request_timeout",
      "disk_full",
    ],
  },
  {
    id: "getFile",
    method: "GET",
    path: "/fs/{path}",
    auth: "capability",
    feature: "fs",
    summary: "Reads bytes, whole or a range",
    parameters: [
      cap,
      {
        name: "Range",
        in: "header",
        description: "One range of bytes. Ignored under a single-use capability.",
      },
      { name: "If-None-Match", in: "header", description: "Versions that the client has." },
    ],
    success: {
      200: { description: "The bytes", mediaType: "application/octet-stream" },
      206: { description: "A part of the bytes", mediaType: "application/octet-stream" },
      304: { description: "The client has this version" },
    },
    errors: [
      ...CREDENTIAL,
      ...SCOPE,
      ...FILE,
      "prefetch",
      "not_found",
      "precondition_failed",
      "range_not_satisfiable",
    ],
  },
  {
    id: "statFile",
    method: "HEAD",
    path: "/fs/{path}",
    auth: "capability",
    feature: "fs",
    summary: "Says size, time and version of a file; refusals are their status alone",
    parameters: [cap],
    success: {
      200: { description: "The file is there" },
      304: { description: "The client has this version" },
    },
    errors: [...CREDENTIAL, ...SCOPE, ...FILE, "prefetch", "not_found", "precondition_failed"],
  },
  {
    id: "deleteFile",
    method: "DELETE",
    path: "/fs/{path}",
    auth: "capability",
    feature: "fs",
    summary: "Removes a file; doing it again is no error",
    parameters: [cap, ifMatch],
    success: { 200: { description: "The file is not there (any more)", schema: schemas.deleteResult } },
    errors: [...CREDENTIAL, ...SCOPE, ...FILE, "precondition_failed"],
  },
  {
    id: "mintCapability",
    method: "POST",
    path: "/capabilities",
    auth: "operator_or_agent",
    feature: "capability-tokens",
    summary: "Mints a capability; its secret is in this answer and nowhere else",
    body: { mediaType: "application/json", schema: mintRequestSchema },
    success: { 201: { description: "Minted", schema: schemas.mintedCapability } },
    errors: [...ADMIN, ...JSON_BODY, "not_your_agent", "agent_not_found", "disk_full"],
  },
  {
    id: "listCapabilities",
    method: "GET",
    path: "/capabilities",
    auth: "operator_or_agent",
    feature: "capability-tokens",
    summary: "Lists capabilities without secrets, newest first",
    parameters: [
      { name: "agent_id", in: "query", description: "Only those of one agent." },
      { name: "limit", in: "query", description: "How many at most: 1 to 1000, usually 100." },
      { name: "cursor", in: "query", description: "Where the page before ended." },
    ],
    success: { 200: { description: "A page of records", schema: schemas.capabilityList } },
    errors: [...ADMIN, "invalid_request", "not_your_agent"],
  },
  {
    id: "revokeCapability",
    method: "DELETE",
    path: "/capabilities/{token_id}",
    auth: "operator_or_agent",
    feature: "capability-tokens",
    summary: "Revokes a capability, from the next request on",
    success: {
      200: { description: "It is dead; `revoked` is false when it was before", schema: schemas.revokeResult },
    },
    errors: [...ADMIN, "not_your_agent", "capability_not_found"],
  },
  {
    id: "pairAgent",
    method: "POST",
    path: "/agents",
    auth: "operator",
    feature: "agents",
    summary: "Makes sure that an agent exists, with its webhook, key and first capability where asked for",
    body: { mediaType: "application/json", schema: schemas.pairRequest },
    success: { 200: { description: "Paired", schema: schemas.paired } },
    errors: [...ADMIN, ...JSON_BODY, "disk_full"],
  },
  {
    id: "listAgents",
    method: "GET",
    path: "/agents",
    auth: "operator",
    feature: "agents",
    summary: "Lists agents, oldest first",
    success: { 200: { description: "All agents", schema: schemas.agentList } },
    errors: ADMIN,
  },
  {
    id: "getAgent",
    method: "GET",
    path: "/agents/{agent_id}",
    auth: "operator",
    feature: "agents",
    summary: "Shows one agent",
    success: { 200: { description: "The agent", schema: schemas.agent } },
    errors: [...ADMIN, "agent_not_found"],
  },
  {
    id: "deleteAgent",
    method: "DELETE",
    path: "/agents/{agent_id}",
    auth: "operator",
    feature: "agents",
    summary: "Ends an agent with its key, webhook, streams and capabilities; its files stay",
    success: {
      200: { description: "It is gone; `deleted` is false when it was before", schema: schemas.teardown },
    },
    errors: ADMIN,
  },
  {
    id: "rotateAgentKey",
    method: "POST",
    path: "/agents/{agent_id}/key",
    auth: "operator",
    feature: "agent-keys",
    summary: "Makes a fresh key for an agent; the one before dies",
    success: { 200: { description: "The key, shown once", schema: schemas.agentKey } },
    errors: [...ADMIN, "agent_not_found", "disk_full"],
  },
  {
    id: "showWebhook",
    method: "GET",
    path: "/agents/{agent_id}/webhook",
    auth: "operator",
    feature: "agent-webhooks",
    summary: "Shows an agent's webhook URL, which changes nothing",
    success: { 200: { description: "The URL", schema: schemas.webhook } },
    errors: [...ADMIN, "agent_not_found"],
  },
  {
    id: "rotateWebhook",
    method: "POST",
    path: "/agents/{agent_id}/webhook",
    auth: "operator",
    feature: "agent-webhooks",
    summary: "Replaces an agent's webhook URL; the one before dies",
    success: { 200: { description: "The new URL", schema: schemas.webhook } },
    errors: [...ADMIN, "agent_not_found", "disk_full"],
  },
  {
    id: "receiveWebhook",
    method: "POST",
    path: "/webhook/{token}",
    auth: "webhook",
    feature: "events",
    summary: "Leaves a text in the agent's inbox; it is never run as a command",
    body: { mediaType: "text/plain" },
    success: { 202: { description: "Stored", schema: schemas.webhookAccepted } },
    errors: [
      "unknown_token",
      "rate_limited",
      "invalid_request",
      "too_large",
      "unsupported_media_type",
      "disk_full",
    ],
  },
  {
    id: "listEvents",
    method: "GET",
    path: "/events",
    auth: "agent",
    feature: "events",
    summary: "Lists the agent's events, oldest first",
    parameters: [
      agentHeader,
      { name: "status", in: "query", description: "'pending' or 'ack'; both when absent." },
      { name: "limit", in: "query", description: "How many at most: a page has no more than 100." },
      { name: "cursor", in: "query", description: "Where the page before ended." },
    ],
    success: { 200: { description: "A page of events", schema: schemas.eventList } },
    errors: [...ADMIN, "invalid_request", "not_your_agent"],
  },
  {
    id: "streamEvents",
    method: "GET",
    path: "/events/stream",
    auth: "agent",
    feature: "event-stream",
    summary: "Streams the agent's events as they come (ready, event, gap, ping)",
    parameters: [agentHeader, {
      name: "Last-Event-ID",
      in: "header",
      description: "Goes on behind this event.",
    }],
    success: { 200: { description: "Server-sent events", mediaType: "text/event-stream" } },
    errors: [...ADMIN, "invalid_request", "not_your_agent"],
  },
  {
    id: "acknowledgeEvent",
    method: "POST",
    path: "/events/{event_id}/ack",
    auth: "agent",
    feature: "events",
    summary: "Acknowledges an event; it is kept seven more days",
    parameters: [agentHeader],
    success: { 200: { description: "The event", schema: schemas.event } },
    errors: [...ADMIN, "invalid_request", "not_your_agent", "not_found"],
  },
  {
    id: "describe",
    method: "GET",
    path: "/describe",
    auth: "none",
    feature: "describe",
    summary: "Says what this server is, what it can do and within which limits",
    success: { 200: { description: "The description", schema: schemas.description } },
    errors: [],
  },
  {
    id: "health",
    method: "GET",
    path: "/health",
    auth: "none",
    feature: "health",
    summary: "Says whether this server can work",
    success: {
      200: { description: "It can", schema: schemas.health },
      503: {
        description: "The database cannot be reached, or the server is stopping",
        schema: schemas.health,
      },
    },
    errors: [],
  },
  {
    id: "openapi",
    method: "GET",
    path: "/openapi.json",
    auth: "none",
    feature: "openapi",
    summary: "This list, as an OpenAPI document",
    success: { 200: { description: "The document", mediaType: "application/json" } },
    errors: [],
  },
  {
    id: "landing",
    method: "GET",
    path: "/",
    auth: "none",
    feature: "describe",
    summary: "Says to a person or an agent what runs here and how to begin",
    success: { 200: { description: "A page", mediaType: ["text/html", "text/markdown"] } },
    errors: [],
  },
] as const satisfies readonly RouteSpec[];

/** The name of one operation. */
export type OperationId = typeof ROUTES[number]["id"];

/** Returns the routes grouped by path, in the order of the table. */
export function routesByPath(): Map<string, RouteSpec[]> {
  return Map.groupBy<string, RouteSpec>(ROUTES, (route) => route.path);
}
