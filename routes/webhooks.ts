/** `POST /webhook/{token}`: leaves a text for an agent. Source: SYS-AG-06. */
import { AppError } from "../base/errors.ts";
import { MAX_EVENT_BYTES } from "../runtime/events.ts";
import type { Context, Handler } from "./handler.ts";
import { mediaTypeOf, readText } from "./json_body.ts";
import { json } from "./respond.ts";

/** Binds the handler of webhooks. */
export function bindWebhooks(
  { agents, events, audit, identity, config }: Context,
): { receiveWebhook: Handler } {
  return {
    async receiveWebhook({ raw, param, facts }) {
      const agent = await agents.findByWebhookToken(param("token"));
      if (agent === undefined) {
        return identity.refuseUnknown(
          facts,
          "Cannot accept this webhook: its token is unknown",
          "Ask the operator for the agent's present webhook URL.",
        );
      }
      const type = mediaTypeOf(raw);
      if (
        type !== "" && !type.startsWith("text/") && type !== "application/json" && !type.endsWith("+json")
      ) {
        throw new AppError("unsupported_media_type", "Cannot accept this event: it must be text or JSON", {
          hint: "Send it with 'Content-Type: text/plain'.",
        });
      }
      const text = await readText(raw, MAX_EVENT_BYTES, config.idleTimeoutMs);
      if (text.trim() === "") throw new AppError("invalid_request", "Cannot accept this event: it is empty");
      if (text.includes("\0")) {
        throw new AppError("invalid_request", "Cannot accept this event: it has a NUL character");
      }
      // Once more: the token may have been replaced while the body came.
      if ((await agents.findByWebhookToken(param("token")))?.incarnation !== agent.incarnation) {
        throw new AppError("unknown_token", "Cannot accept this webhook: its token was replaced meanwhile");
      }
      const eventId = await events.append(agent, text);
      audit.record({ actor: "webhook", action: "event.receive", agentId: agent.agent_id, outcome: "ok" });
      return json({ ok: true, agent_id: agent.agent_id, event_id: eventId }, 202);
    },
  };
}
