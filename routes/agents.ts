/** `/agents`: pairing, keys, webhook URLs, teardown. Source: SYS-AG-01 … 05, 08. */
import { AppError } from "../base/errors.ts";
import { parseGrant } from "../caps/grant.ts";
import type { PairRequest } from "../runtime/agents.ts";
import type { AgentRow } from "../store/database/agent_rows.ts";
import { actorOf, requireSameCaller } from "./access.ts";
import type { CallerHandler, Context } from "./handler.ts";
import { readJsonObject } from "./json_body.ts";
import { json } from "./respond.ts";

const FIELDS = ["agent_id", "webhook", "key", "capability", "home", "allowed_paths"];

function refuse(message: string, hint?: string): AppError {
  return new AppError(
    "invalid_request",
    `Cannot create agent: ${message}`,
    hint === undefined ? {} : { hint },
  );
}

function readFlag(body: Record<string, unknown>, name: string): boolean {
  const value = body[name] ?? false;
  if (typeof value !== "boolean") throw refuse(`${name} must be true or false`);
  return value;
}

/** Reads the body of `POST /agents`; everything in it is checked before anything is made. */
function readPairing(body: Record<string, unknown>, maxTtlMs: number): PairRequest & { webhook: boolean } {
  const unknown = Object.keys(body).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    throw refuse(
      `unknown field ${JSON.stringify(unknown.slice(0, 40))}; the fields are ${FIELDS.join(", ")}`,
    );
  }
  const { agent_id: agentId, home, capability, allowed_paths: allowedPaths } = body;
  if (typeof agentId !== "string") throw refuse("agent_id must be a string");
  if (home !== undefined && typeof home !== "string") throw refuse("home must be a string");
  if (allowedPaths !== undefined && !(Array.isArray(allowedPaths) && allowedPaths.length === 0)) {
    throw refuse(
      "allowed_paths can only be empty",
      "Leave it out: an agent has its own workspace and no other folder.",
    );
  }
  return {
    agentId,
    webhook: readFlag(body, "webhook"),
    key: readFlag(body, "key"),
    ...(home === undefined ? {} : { home }),
    ...(capability === undefined ? {} : { capability: parseGrant(capability, { maxTtlMs, operator: true }) }),
  };
}

/** Binds the handlers of agents. */
export function bindAgents({ agents, audit, config, publicBase, access }: Context): {
  pairAgent: CallerHandler;
  listAgents: CallerHandler;
  getAgent: CallerHandler;
  deleteAgent: CallerHandler;
  rotateAgentKey: CallerHandler;
  showWebhook: CallerHandler;
  rotateWebhook: CallerHandler;
} {
  const toWebhookUrl = (token: string) => `${publicBase()}/webhook/${token}`;
  const toRecord = (agent: AgentRow) => {
    const createdAt = new Date(agent.created_at).toISOString();
    const { agent_id } = agent;
    return { agent_id, id: agent_id, home: agents.workspaceOf(agent).home, created_at: createdAt, createdAt };
  };
  return {
    async pairAgent({ raw, facts }, caller) {
      const body = await readJsonObject(raw, config.idleTimeoutMs);
      await requireSameCaller(facts, caller, access);
      const request = readPairing(body, config.maxTtlMs);
      const { agent, created, agentKey, capability } = await agents.pair(request);
      audit.record({
        actor: actorOf(caller),
        action: "agent.pair",
        agentId: agent.agent_id,
        outcome: "ok",
        detail: { created, key: agentKey !== undefined },
        ...(capability === undefined ? {} : { tokenId: capability.token_id }),
      });
      return json({
        agent_id: agent.agent_id,
        home: agents.workspaceOf(agent).home,
        created,
        ...(request.webhook ? { webhook_url: toWebhookUrl(await agents.webhookToken(agent)) } : {}),
        ...(capability === undefined ? {} : { capability }),
        ...(agentKey === undefined ? {} : { agent_key: agentKey }),
      });
    },

    async listAgents() {
      return json({ agents: (await agents.list()).map(toRecord) });
    },

    async getAgent({ param }) {
      return json(toRecord(await agents.get(param("agent_id"))));
    },

    async deleteAgent({ param }, caller) {
      const agentId = param("agent_id");
      const { deleted, revokedCapabilities } = await agents.remove(agentId);
      if (deleted) {
        audit.record({
          actor: actorOf(caller),
          action: "agent.delete",
          agentId,
          outcome: "ok",
          detail: { revoked_capabilities: revokedCapabilities },
        });
      }
      return json({
        agent_id: agentId,
        deleted,
        revoked_capabilities: revokedCapabilities,
        disposed_sessions: 0,
      });
    },

    async rotateAgentKey({ param }, caller) {
      const { agent, agentKey } = await agents.rotateKey(param("agent_id"));
      audit.record({ actor: actorOf(caller), action: "agent.key", agentId: agent.agent_id, outcome: "ok" });
      return json({ agent_id: agent.agent_id, agent_key: agentKey });
    },

    async showWebhook({ param }) {
      const agent = await agents.get(param("agent_id"));
      return json({ agent_id: agent.agent_id, webhook_url: toWebhookUrl(await agents.webhookToken(agent)) });
    },

    async rotateWebhook({ param }, caller) {
      const agentId = param("agent_id");
      const token = await agents.rotateWebhook(agentId);
      audit.record({ actor: actorOf(caller), action: "agent.webhook", agentId, outcome: "ok" });
      return json({ agent_id: agentId, webhook_url: toWebhookUrl(token) });
    },
  };
}
