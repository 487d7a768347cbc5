/**
 * Who may come in on the admin and channel planes: the guard, then the caller's name, then the route's own rule.
 *
 * Source: architecture.md "Who is the operator, and which agent is this", "The guard".
 */
import { AppError } from "../base/errors.ts";
import type { Guard } from "../runtime/guard.ts";
import type { Caller, Identity, RequestFacts } from "../runtime/identity.ts";
import type { AgentRow } from "../store/database/agent_rows.ts";

/** What these checks work with. */
export interface AccessOptions {
  readonly guard: Guard;
  readonly identity: Identity;
  findAgent(agentId: string): Promise<AgentRow>;
}

/**
 * Returns who calls an admin or channel route.
 *
 * A valid token sent by a program passes whatever its `Host`; a page of another origin never does. Throws `cross_site`,
 * `host_not_allowed`, `unknown_token`, `rate_limited`, `admin_required` when nobody is named, or `not_your_agent` when
 * `X-Agent-Id` names another agent than the key.
 */
export async function requireCaller(
  facts: RequestFacts,
  { guard, identity }: AccessOptions,
): Promise<Caller> {
  guard.refuseForeignPage(facts.header);
  const fromPage = facts.header("origin") !== null || facts.header("sec-fetch-site") !== null;
  const hasToken = facts.header("authorization") !== null;
  if (!hasToken || fromPage) guard.refuseForeignHost(facts.header("host"));
  const caller = await identity.identify(facts);
  if (caller === undefined) {
    throw new AppError("admin_required", "Cannot serve this without the operator's or an agent's token");
  }
  const named = facts.header("x-agent-id");
  if (named !== null) requireSameAgent(caller, named);
  return caller;
}

/**
 * Makes sure, after a body was read, that its sender's token is still good: a body may take as long as its sender likes,
 * and a key that was replaced meanwhile must not be used to its end. Throws `unknown_token`.
 */
export async function requireSameCaller(
  facts: RequestFacts,
  caller: Caller,
  { identity }: AccessOptions,
): Promise<void> {
  if (caller.kind === "operator" && caller.by === "ambient") return;
  const again = await identity.identify(facts);
  const same = again?.kind === caller.kind &&
    (again.kind !== "agent" || caller.kind !== "agent" ||
      again.agent.incarnation === caller.agent.incarnation);
  if (!same) throw new AppError("unknown_token", "Cannot serve this: the token was replaced meanwhile");
}

/** Throws `admin_required` unless the operator calls. */
export function requireOperator(caller: Caller): void {
  if (caller.kind !== "operator") {
    throw new AppError("admin_required", "Cannot serve this to an agent: it is the operator's", {
      hint: "Send the admin token instead of the agent's key.",
    });
  }
}

/** Throws `not_your_agent` when an agent reaches for another one's things. The operator may reach for all. */
export function requireSameAgent(caller: Caller, agentId: string): void {
  if (caller.kind === "agent" && caller.agent.agent_id !== agentId) {
    throw new AppError("not_your_agent", "Cannot serve this: the key is of another agent");
  }
}

/** The same for what belongs to one incarnation: an agent's namesake of earlier days is another agent. */
export function requireSameIncarnation(
  caller: Caller,
  owner: { agentId: string; incarnation: string },
): void {
  requireSameAgent(caller, owner.agentId);
  if (caller.kind === "agent" && caller.agent.incarnation !== owner.incarnation) {
    throw new AppError("not_your_agent", "Cannot serve this: it was an earlier agent's of this name");
  }
}

/**
 * Returns the agent that a channel request is for: the key's own, or the one that the operator names in `X-Agent-Id`.
 *
 * Throws `invalid_request` when nobody is named, `unknown_token` for a name that is no agent's.
 */
export async function requireAgent(
  facts: RequestFacts,
  caller: Caller,
  options: AccessOptions,
): Promise<AgentRow> {
  if (caller.kind === "agent") return caller.agent;
  const named = facts.header("x-agent-id");
  if (named === null || named === "") {
    throw new AppError("invalid_request", "Cannot tell which agent is meant", {
      hint: "Send the agent's key, or its id in X-Agent-Id.",
    });
  }
  try {
    return await options.findAgent(named);
  } catch (error) {
    if (!(error instanceof AppError && error.code === "agent_not_found")) throw error;
    throw new AppError("unknown_token", "Cannot find the agent that X-Agent-Id names", {
      hint: "See GET /agents.",
    });
  }
}

/** Names a caller in the audit trail. */
export function actorOf(caller: Caller): string {
  return caller.kind === "operator" ? "operator" : `agent:${caller.agent.agent_id}`;
}
