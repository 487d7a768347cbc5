/** `GET /openapi.json`: the table of routes as an OpenAPI 3.1 document. */
import { toJsonSchema } from "@valibot/to-json-schema";
import type { GenericSchema } from "valibot";
import { type ErrorCode, ERRORS } from "../base/errors.ts";
import { VERSION } from "../base/version.ts";
import type { Context, Handler } from "./handler.ts";
import { json } from "./respond.ts";
import { COMMON_ERRORS } from "./refusals.ts";
import type { Auth, RouteSpec } from "./route_spec.ts";
import * as schemas from "./schemas.ts";
import { ROUTES } from "./table.ts";

type Json = Record<string, unknown>;

/** What a schema checks beyond JSON Schema (a canonical path, say) is left out of the document, not refused. */
function toSchema(schema: GenericSchema): Json {
  const { $schema: _, ...rest } = toJsonSchema(schema, { errorMode: "ignore" });
  return rest;
}

const SECURITY: Record<Auth, readonly Json[]> = {
  none: [],
  webhook: [],
  capability: [{ capability: [] }, { presigned: [] }],
  operator: [{ admin: [] }, {}],
  operator_or_agent: [{ admin: [] }, { agent: [] }, {}],
  agent: [{ agent: [] }, { admin: [] }, {}],
};

function toParameters(route: RouteSpec): Json[] {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  return [
    ...names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })),
    ...(route.parameters ?? []).map((parameter) => ({
      ...parameter,
      required: false,
      schema: { type: "string" },
    })),
  ];
}

function toResponses(route: RouteSpec): Json {
  const responses: Record<string, Json> = {};
  for (const [status, { description, mediaType, schema }] of Object.entries(route.success)) {
    const types = [mediaType ?? (schema === undefined ? [] : "application/json")].flat();
    const content = schema === undefined ? { type: "string" } : toSchema(schema);
    responses[status] = {
      description,
      ...(types.length === 0
        ? {}
        : { content: Object.fromEntries(types.map((type) => [type, { schema: content }])) }),
    };
  }
  const byStatus = Map.groupBy<number, ErrorCode>(
    new Set([...route.errors, ...COMMON_ERRORS]),
    (code) => ERRORS[code].status,
  );
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    responses[status] ??= {
      description: `Refused: ${codes.join(", ")}`,
      ...(route.method === "HEAD"
        ? {}
        : { content: { "application/json": { schema: { $ref: "#/components/schemas/Problem" } } } }),
    };
  }
  return responses;
}

function toOperation(route: RouteSpec, maxTtlMs: number): Json {
  const schema = typeof route.body?.schema === "function" ? route.body.schema(maxTtlMs) : route.body?.schema;
  return {
    operationId: route.id,
    summary: route.summary,
    tags: [route.feature],
    security: SECURITY[route.auth],
    parameters: toParameters(route),
    ...(route.body === undefined ? {} : {
      requestBody: {
        required: true,
        content: {
          [route.body.mediaType]: { schema: schema === undefined ? { type: "string" } : toSchema(schema) },
        },
      },
    }),
    responses: toResponses(route),
  };
}

/** Returns the OpenAPI document of this server. */
export function toOpenApi(maxTtlMs: number, serverUrl: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of ROUTES) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = toOperation(route, maxTtlMs);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "String",
      version: VERSION,
      description: "An agent's files behind capabilities. A path under /fs/ may have any number of segments.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: serverUrl }],
    paths,
    components: {
      schemas: { Problem: toSchema(schemas.problem) },
      securitySchemes: {
        admin: { type: "http", scheme: "bearer", description: "The operator's token (adm_…)" },
        agent: { type: "http", scheme: "bearer", description: "An agent's key (agk_…)" },
        capability: { type: "http", scheme: "bearer", description: "A capability's secret (caps_…)" },
        presigned: {
          type: "apiKey",
          in: "query",
          name: "cap",
          description: "A capability's secret in the URL",
        },
      },
    },
  };
}

/** Binds the handler of the document. */
export function bindOpenApi({ config, publicBase }: Context): { openapi: Handler } {
  return { openapi: () => json(toOpenApi(config.maxTtlMs, publicBase())) };
}
