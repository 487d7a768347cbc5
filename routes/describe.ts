/** `/describe` and `/health`: what this server is and how it is, for anyone. Source: SYS-DESC-01 … 03; SYS-FS-10. */
import { VERSION } from "../base/version.ts";
import { VERBS } from "../caps/model.ts";
import { MAX_EVENT_BYTES, MAX_PENDING_EVENTS } from "../runtime/events.ts";
import type { Context, Handler } from "./handler.ts";
import { json } from "./respond.ts";
import type { Feature } from "./route_spec.ts";
import { ROUTES } from "./table.ts";

/** The limits of each feature. A key is shown only when a route of the table has it. */
function describeFeatures({ config, store }: Context): Record<Feature, Record<string, unknown>> {
  const { abilities } = store;
  return {
    describe: {},
    health: {},
    openapi: { path: "/openapi.json" },
    fs: {
      max_bytes: config.maxBytes,
      verbs: VERBS,
      containment: abilities.containment,
      ...(abilities.ranges ? { ranges: true } : {}),
      ...(abilities.conditionalRequests ? { conditional_requests: true } : {}),
    },
    "capability-tokens": { max_ttl_ms: config.maxTtlMs, presigned: true, single_use: true },
    agents: {},
    "agent-keys": {},
    "agent-webhooks": {},
    events: { max_webhook_text_bytes: MAX_EVENT_BYTES, max_pending: MAX_PENDING_EVENTS },
    "event-stream": { ping_ms: 30_000 },
  };
}

/** Binds the handlers of `/describe` and `/health`. */
export function bindDescribe(context: Context): { describe: Handler; health: Handler } {
  const { agents, config } = context;
  const present = new Set<string>(ROUTES.map((route) => route.feature));
  const capabilities = Object.fromEntries(
    Object.entries(describeFeatures(context)).filter(([feature]) => present.has(feature)),
  );
  return {
    describe: () =>
      json({
        name: "string",
        version: VERSION,
        api: "string-daemon/v2",
        instance: { instance_label: config.label, role: config.role },
        capabilities,
      }),

    async health() {
      const state = { version: VERSION, agents: 0, sessions: 0 };
      try {
        const count = await agents.count();
        return context.draining
          ? json({ ok: false, ...state, agents: count }, 503, { "retry-after": "1" })
          : json({ ok: true, ...state, agents: count });
      } catch {
        // Whatever the database suffers from, the answer is the same and says no more to a stranger.
        return json({ ok: false, ...state }, 503, { "retry-after": "1" });
      }
    },
  };
}
