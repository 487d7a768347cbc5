/** `/capabilities`: mint, list, revoke. Source: SYS-CAP-01 … 04. */
import { AGENT_ID_RULE, isAgentId } from "../base/agent_id.ts";
import { AppError } from "../base/errors.ts";
import { parseMintRequest } from "../caps/grant.ts";
import { actorOf, requireSameAgent, requireSameCaller, requireSameIncarnation } from "./access.ts";
import type { CallerHandler, Context } from "./handler.ts";
import { readJsonObject } from "./json_body.ts";
import { readLimit } from "./paging.ts";
import { json } from "./respond.ts";
import { readSingleQuery } from "./target.ts";

/** Binds the handlers of capabilities. */
export function bindCapabilities({ capabilities, audit, config, access }: Context): {
  mintCapability: CallerHandler;
  listCapabilities: CallerHandler;
  revokeCapability: CallerHandler;
} {
  return {
    async mintCapability({ raw, facts }, caller) {
      const body = await readJsonObject(raw, config.idleTimeoutMs);
      await requireSameCaller(facts, caller, access);
      const { agentId, grant } = parseMintRequest(body, {
        maxTtlMs: config.maxTtlMs,
        operator: caller.kind === "operator",
      });
      requireSameAgent(caller, agentId);
      const minted = await capabilities.mint(
        grant,
        agentId,
        caller.kind === "agent" ? caller.agent.incarnation : undefined,
      );
      audit.record({
        actor: actorOf(caller),
        action: "capability.mint",
        agentId,
        tokenId: minted.token_id,
        outcome: "ok",
        detail: {
          verbs: minted.verbs.join(","),
          single_use: minted.single_use,
          ttl_ms: grant.ttlMs,
        },
      });
      return json(minted, 201);
    },

    async listCapabilities({ target }, caller) {
      const asked = readSingleQuery(target.query, "agent_id");
      if (asked !== undefined && !isAgentId(asked)) {
        throw new AppError("invalid_request", `Cannot list: agent_id must be ${AGENT_ID_RULE}`);
      }
      if (asked !== undefined) requireSameAgent(caller, asked);
      const agentId = caller.kind === "agent" ? caller.agent.agent_id : asked;
      const cursor = readSingleQuery(target.query, "cursor");
      return json(
        await capabilities.list({
          limit: readLimit(target.query),
          ...(agentId === undefined ? {} : { agentId }),
          ...(caller.kind === "agent" ? { incarnation: caller.agent.incarnation } : {}),
          ...(cursor === undefined ? {} : { cursor }),
        }),
      );
    },

    async revokeCapability({ param }, caller) {
      const tokenId = param("token_id");
      const capability = await capabilities.find(tokenId);
      if (capability === undefined) {
        throw new AppError("capability_not_found", "Cannot revoke: there is no such capability");
      }
      requireSameIncarnation(caller, capability);
      const { revoked } = await capabilities.revoke(tokenId);
      audit.record({
        actor: actorOf(caller),
        action: "capability.revoke",
        agentId: capability.agentId,
        tokenId,
        outcome: "ok",
        detail: { revoked },
      });
      return json({ token_id: tokenId, revoked });
    },
  };
}
