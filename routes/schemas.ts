/**
 * What goes over the wire as JSON, in one place: the OpenAPI document is made from these, and the tests hold every answer
 * against them.
 */
import * as v from "valibot";
import { AGENT_ID } from "../base/agent_id.ts";
import { grantSchema } from "../caps/grant.ts";
import { VERBS } from "../caps/model.ts";

const time = v.pipe(v.string(), v.isoTimestamp(), v.description("ISO 8601 in UTC."));
const agentId = v.pipe(v.string(), v.regex(AGENT_ID));
const home = v.pipe(v.string(), v.description("Absolute folder of the workspace on the host."));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Every refusal (SYS-ERR-01). */
export const problem = v.strictObject({
  error: v.pipe(v.string(), v.description("For a person.")),
  reason: v.pipe(v.string(), v.description("For a program.")),
  hint: v.optional(v.pipe(v.string(), v.description("What to do next."))),
  request_id: v.optional(v.pipe(v.string(), v.description("Finds the failure in the server's log."))),
});

/** PUT /fs/{path}. */
export const putResult = v.strictObject({ path: v.string(), bytes: count, created: v.boolean() });

/** DELETE /fs/{path}. */
export const deleteResult = v.strictObject({ path: v.string(), existed: v.boolean() });

const capabilityFields = {
  token_id: v.pipe(v.string(), v.startsWith("cap_")),
  agent_id: agentId,
  path_prefix: v.string(),
  verbs: v.array(v.picklist(VERBS)),
  expires_at: v.nullable(time),
  single_use: v.boolean(),
  created_at: v.nullable(time),
  author: v.optional(v.literal("agent")),
};

/** The answer to a mint: the only place where a secret is shown. */
export const mintedCapability = v.strictObject({
  ...capabilityFields,
  secret: v.pipe(v.string(), v.startsWith("caps_"), v.description("Shown once.")),
});

/** One record of a listing. */
export const capabilityRecord = v.strictObject({
  ...capabilityFields,
  status: v.picklist(["live", "expired", "consumed", "revoked"]),
  consumed_at: v.nullable(time),
  revoked_at: v.nullable(time),
});

const cursor = v.optional(
  v.pipe(v.string(), v.description("Present when there may be more: ask again with it.")),
);

/** GET /capabilities. */
export const capabilityList = v.strictObject({ capabilities: v.array(capabilityRecord), cursor });

/** DELETE /capabilities/{token_id}. */
export const revokeResult = v.strictObject({ token_id: v.string(), revoked: v.boolean() });

/** POST /agents, what is sent. */
export function pairRequest(maxTtlMs: number) {
  return v.strictObject({
    agent_id: agentId,
    webhook: v.optional(v.pipe(v.boolean(), v.description("Whether to return the webhook's URL."))),
    key: v.optional(
      v.pipe(v.boolean(), v.description("Whether to make a key for the agent; an earlier one dies.")),
    ),
    capability: v.optional(grantSchema(maxTtlMs)),
    home: v.optional(
      v.pipe(v.string(), v.description("A folder inside one that the operator listed (--homes).")),
    ),
    allowed_paths: v.optional(v.pipe(v.array(v.string()), v.maxLength(0))),
  });
}

/** POST /agents. */
export const paired = v.strictObject({
  agent_id: agentId,
  home,
  created: v.boolean(),
  webhook_url: v.optional(v.string()),
  capability: v.optional(mintedCapability),
  agent_key: v.optional(v.pipe(v.string(), v.startsWith("agk_"), v.description("Shown once."))),
});

/** One agent; `id` and `createdAt` are for older clients. */
export const agent = v.strictObject({
  agent_id: agentId,
  id: agentId,
  home,
  created_at: time,
  createdAt: time,
});

/** GET /agents. */
export const agentList = v.strictObject({ agents: v.array(agent) });

/** DELETE /agents/{agent_id}. */
export const teardown = v.strictObject({
  agent_id: v.string(),
  deleted: v.boolean(),
  revoked_capabilities: count,
  disposed_sessions: count,
});

/** POST /agents/{agent_id}/key. */
export const agentKey = v.strictObject({
  agent_id: agentId,
  agent_key: v.pipe(v.string(), v.startsWith("agk_")),
});

/** GET and POST /agents/{agent_id}/webhook. */
export const webhook = v.strictObject({ agent_id: agentId, webhook_url: v.string() });

/** POST /webhook/{token}. */
export const webhookAccepted = v.strictObject({
  ok: v.literal(true),
  agent_id: agentId,
  event_id: v.string(),
});

/** One event of an inbox (CH-EV-01). */
export const event = v.strictObject({
  id: v.pipe(v.string(), v.startsWith("evt_")),
  agentId,
  receivedAt: time,
  source: v.string(),
  text: v.string(),
  status: v.picklist(["pending", "ack"]),
  ackedAt: v.optional(time),
});

/** GET /events. */
export const eventList = v.strictObject({ events: v.array(event), cursor });

/** GET /health. */
export const health = v.strictObject({
  ok: v.boolean(),
  version: v.string(),
  agents: count,
  sessions: count,
});

/** GET /describe. */
export const description = v.strictObject({
  name: v.string(),
  version: v.string(),
  api: v.literal("string-daemon/v2"),
  instance: v.strictObject({ instance_label: v.string(), role: v.picklist(["dev", "test", "production"]) }),
  capabilities: v.record(v.string(), v.record(v.string(), v.unknown())),
});
