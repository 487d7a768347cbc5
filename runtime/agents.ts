/**
 * Agents: pairing in one transaction, keys, webhook tokens, teardown.
 *
 * A name may come back after a deletion; what was granted to the old incarnation does not. Source: SYS-AG-01 … 05.
 */
import { AGENT_ID_RULE, isAgentId } from "../base/agent_id.ts";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { createId, createSecret, PREFIX } from "../base/ids.ts";
import { KeyedLock } from "../base/keyed_lock.ts";
import type { Grant } from "../caps/grant.ts";
import { hashSecret } from "../caps/secret.ts";
import type { CapabilityService, MintedCapability } from "../caps/service.ts";
import type { AgentRow, AgentRows } from "../store/database/agent_rows.ts";
import type { WorkspaceRef, WorkspaceStore } from "../store/workspace/types.ts";
import type { Homes } from "./homes.ts";
import type { WebhookTokens } from "./webhooks.ts";

/** What a pairing asks for. */
export interface PairRequest {
  readonly agentId: string;
  readonly home?: string;
  readonly key?: boolean;
  readonly capability?: Grant;
}

/** What a pairing gives; secrets are in it once. */
export interface Paired {
  readonly agent: AgentRow;
  readonly created: boolean;
  readonly agentKey?: string;
  readonly capability?: MintedCapability;
}

/** What a teardown ended. */
export interface Teardown {
  readonly deleted: boolean;
  readonly revokedCapabilities: number;
}

/** What the agents service works with. */
export interface AgentsOptions {
  readonly rows: AgentRows;
  readonly capabilities: CapabilityService;
  readonly store: WorkspaceStore;
  readonly homes: Homes;
  readonly webhooks: WebhookTokens;
  readonly clock: Clock;
  /** Called after an agent is gone: streams of it are closed. */
  onRemoved(incarnation: string): void;
  /** Called after an agent has another key: streams that were opened with the old one end. */
  onKeyReplaced(incarnation: string): void;
}

/** No agent can be called so. */
const HOMES_LOCK = "/homes";

/** Keeps the agents of this installation. */
export class Agents {
  readonly #options: AgentsOptions;
  readonly #locks = new KeyedLock();
  /** A home never changes within an incarnation, so this needs no invalidation, only a bound. */
  readonly #workspaces = new Map<string, WorkspaceRef>();

  constructor(options: AgentsOptions) {
    this.#options = options;
  }

  /**
   * Makes sure that an agent exists, with a capability and a key where asked for: all of it or none.
   *
   * Throws `invalid_request` before anything is touched. A key that is asked for replaces an earlier one.
   */
  async pair(request: PairRequest): Promise<Paired> {
    if (!isAgentId(request.agentId)) {
      throw new AppError(
        "invalid_request",
        `Cannot create agent: agent_id must be ${AGENT_ID_RULE}`,
      );
    }
    const pairAlone = () => this.#locks.run(request.agentId, () => this.#pairAlone(request));
    // One chosen home at a time: two that are looked at together would not see each other.
    return await (request.home === undefined ? pairAlone() : this.#locks.run(HOMES_LOCK, pairAlone));
  }

  async #pairAlone(request: PairRequest): Promise<Paired> {
    const { rows, store, homes, webhooks, clock } = this.#options;
    const { agentId } = request;
    const existing = await rows.find(agentId);
    const home = await this.#homeFor(request, existing);
    const workspace = homes.workspaceOf(agentId, home);
    const incarnation = createId(PREFIX.incarnation);
    const webhookToken = await webhooks.derive(incarnation, 0);
    const key = request.key === true ? createSecret(PREFIX.agentKey) : undefined;
    const prepared = request.capability === undefined
      ? undefined
      : this.#options.capabilities.prepare(request.capability, agentId);
    const made = await store.createWorkspace(workspace);
    try {
      const { agent, created } = await rows.pair({
        agent: {
          incarnation,
          agent_id: agentId,
          home,
          created_at: clock.now(),
          webhook_counter: 0,
          webhook_hash: requireHash(webhooks.hash(webhookToken)),
        },
        ...(key === undefined ? {} : { keyHash: requireHash(hashSecret(key)) }),
        ...(prepared === undefined ? {} : { capability: prepared.row }),
      });
      if (key !== undefined) this.#options.onKeyReplaced(agent.incarnation);
      return {
        agent,
        created,
        ...(key === undefined ? {} : { agentKey: key }),
        ...(prepared === undefined ? {} : { capability: prepared.minted }),
      };
    } catch (error) {
      if (made) await store.removeEmptyWorkspace(workspace);
      throw error;
    }
  }

  async #homeFor(request: PairRequest, existing: AgentRow | undefined): Promise<string | null> {
    if (request.home === undefined) return existing?.home ?? null;
    const usual = this.#options.homes.workspaceOf(request.agentId, null).home;
    if (existing !== undefined) {
      if (request.home === (existing.home ?? usual)) return existing.home;
      throw new AppError("invalid_request", "Cannot create agent: it exists already with another home");
    }
    if (request.home === usual) return null;
    const others = (await this.list()).map((agent) => this.workspaceOf(agent).home);
    return await this.#options.homes.choose(request.home, others);
  }

  /** Returns all agents, oldest first. */
  list(): Promise<AgentRow[]> {
    return this.#options.rows.list();
  }

  /** Returns one agent. Throws `agent_not_found`. */
  async get(agentId: string): Promise<AgentRow> {
    const agent = isAgentId(agentId) ? await this.#options.rows.find(agentId) : undefined;
    if (agent === undefined) throw new AppError("agent_not_found", "Cannot find this agent");
    return agent;
  }

  /** Returns how many agents there are. */
  count(): Promise<number> {
    return this.#options.rows.count();
  }

  /** Ends an agent: its record, key, webhook token, streams, events and capabilities. The files stay. */
  async remove(agentId: string): Promise<Teardown> {
    if (!isAgentId(agentId)) return { deleted: false, revokedCapabilities: 0 };
    return await this.#locks.run(agentId, async () => {
      const { rows, clock } = this.#options;
      const before = await rows.find(agentId);
      if (before === undefined) return { deleted: false, revokedCapabilities: 0 };
      try {
        const { agent, revokedCapabilities } = await rows.remove(agentId, clock.now());
        return { deleted: agent !== undefined, revokedCapabilities };
      } finally {
        // Also when it fails: a failure may hide a commit, and forgetting costs one look at the database.
        this.#forget(before.incarnation);
      }
    });
  }

  #forget(incarnation: string): void {
    this.#options.capabilities.forgetAgent(incarnation);
    this.#workspaces.delete(incarnation);
    this.#options.onRemoved(incarnation);
  }

  /** Returns a fresh key of an agent; the one before it is dead. Throws `agent_not_found`. */
  async rotateKey(agentId: string): Promise<{ agent: AgentRow; agentKey: string }> {
    await this.get(agentId);
    const agentKey = createSecret(PREFIX.agentKey);
    const agent = await this.#options.rows.setKeyHash(agentId, requireHash(hashSecret(agentKey)));
    if (agent === undefined) throw new AppError("agent_not_found", "Cannot find this agent");
    this.#options.onKeyReplaced(agent.incarnation);
    return { agent, agentKey };
  }

  /** Returns an agent's webhook token, which showing does not change. */
  webhookToken(agent: AgentRow): Promise<string> {
    return this.#options.webhooks.derive(agent.incarnation, agent.webhook_counter);
  }

  /** Replaces an agent's webhook token and returns the new one. Throws `agent_not_found`, or `unavailable` after a race. */
  async rotateWebhook(agentId: string): Promise<string> {
    const agent = await this.get(agentId);
    const token = await this.#options.webhooks.derive(agent.incarnation, agent.webhook_counter + 1);
    const hash = requireHash(this.#options.webhooks.hash(token));
    if (await this.#options.rows.rotateWebhook(agent.incarnation, agent.webhook_counter, hash)) return token;
    throw new AppError("unavailable", "Cannot rotate the webhook: it was rotated or deleted meanwhile", {
      retryAfterSeconds: 1,
    });
  }

  /** Returns the agent that a webhook token belongs to. */
  async findByWebhookToken(token: string): Promise<AgentRow | undefined> {
    const hash = this.#options.webhooks.hash(token);
    return hash === undefined ? undefined : await this.#options.rows.findByWebhookHash(hash);
  }

  /** Returns the workspace of an agent. */
  workspaceOf(agent: AgentRow): WorkspaceRef {
    return this.#options.homes.workspaceOf(agent.agent_id, agent.home);
  }

  /** Returns the usual workspace of a name, whether an agent has it or not. */
  usualWorkspaceOf(agentId: string): WorkspaceRef {
    return this.#options.homes.workspaceOf(agentId, null);
  }

  /** Returns the workspace of one incarnation. Throws `revoked` when that incarnation is gone. */
  workspaceOfIncarnation(agentId: string, incarnation: string): WorkspaceRef | Promise<WorkspaceRef> {
    return this.#workspaces.get(incarnation) ?? this.#findWorkspace(agentId, incarnation);
  }

  async #findWorkspace(agentId: string, incarnation: string): Promise<WorkspaceRef> {
    const agent = await this.#options.rows.find(agentId);
    if (agent === undefined || agent.incarnation !== incarnation) {
      throw new AppError("revoked", "Cannot use this capability: its agent was deleted");
    }
    const workspace = this.workspaceOf(agent);
    if (this.#workspaces.size > 10_000) this.#workspaces.clear();
    this.#workspaces.set(incarnation, workspace);
    return workspace;
  }
}

function requireHash(hash: string | undefined): string {
  if (hash === undefined) throw new TypeError("A fresh secret must have a hash");
  return hash;
}
