/**
 * The one app: reads the target once, routes by the table, and turns every error into a problem.
 *
 * Order of a request: target and `Host` (400) → route (404) → method (405) → guard and caller, where the plane has them
 * (403, 401) → the handler. The rest of an unread body is dropped before a refusal is sent.
 */
import { Hono } from "hono";
import { AppError } from "../base/errors.ts";
import type { Context } from "../runtime/context.ts";
import { requireCaller, requireOperator } from "./access.ts";
import { bindAgents } from "./agents.ts";
import { bindCapabilities } from "./capabilities.ts";
import { addCorsHeaders, isPreflight, toPreflight } from "./cors.ts";
import { bindDescribe } from "./describe.ts";
import { drainBody } from "./drain.ts";
import { bindEvents } from "./events.ts";
import { closeAfterCoding, requirePlainFraming } from "./framing.ts";
import { FS_PREFIX, serveFile } from "./fs.ts";
import {
  type CallerHandler,
  factsOf,
  type Handler,
  type RequestBindings,
  type RouterContext,
} from "./handler.ts";
import { bindLanding } from "./landing.ts";
import { bindOpenApi } from "./openapi.ts";
import { toLoggedMethod, toProblem } from "./problem.ts";
import type { RouteSpec } from "./route_spec.ts";
import { type OperationId, routesByPath } from "./table.ts";
import { readTarget } from "./target.ts";
import { bindWebhooks } from "./webhooks.ts";

/** Answers one request of the listener. */
export type RequestHandler = (
  request: Request,
  info: Deno.ServeHandlerInfo<Deno.NetAddr>,
) => Promise<Response>;

const FILES = "/fs/{path}";
type FileOperation = "putFile" | "getFile" | "statFile" | "deleteFile";

function bindHandlers(
  context: Context,
): Record<Exclude<OperationId, FileOperation>, Handler | CallerHandler> {
  return {
    ...bindCapabilities(context),
    ...bindAgents(context),
    ...bindWebhooks(context),
    ...bindEvents(context),
    ...bindDescribe(context),
    ...bindOpenApi(context),
    ...bindLanding(context),
  };
}

/** Returns what answers every request on one path of the table. */
function createDispatcher(
  routes: readonly RouteSpec[],
  handlers: Record<string, CallerHandler>,
  context: Context,
) {
  const allow = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]);
  return async (c: RouterContext): Promise<Response> => {
    const { raw } = c.req;
    const { target, info } = c.env;
    const method = raw.method === "HEAD" ? "GET" : raw.method;
    const route = routes.find((candidate) => candidate.method === method);
    if (route === undefined) {
      throw new AppError("method_not_allowed", `Cannot ${raw.method} here: use ${allow.join(", ")}`, {
        allow,
      });
    }
    const facts = factsOf(raw, info, context.serverPort());
    const request = { raw, target, facts, param: (name: string) => c.req.param(name) ?? "" };
    const handler = handlers[route.id];
    if (handler === undefined) throw new TypeError(`No handler is bound to ${route.id}`);
    if (route.auth === "none" || route.auth === "webhook") return await (handler as Handler)(request);
    const caller = await requireCaller(facts, context.access);
    if (route.auth === "operator") requireOperator(caller);
    return await handler(request, caller);
  };
}

function createRouter(context: Context) {
  const app = new Hono<{ Bindings: RequestBindings }>({
    // Routes match the raw path, so that no second spelling reaches a handler (report 52).
    getPath: (_, options) => options?.env?.target.path ?? "/",
  });
  const handlers = bindHandlers(context) as Record<string, CallerHandler>;
  for (const [path, routes] of routesByPath()) {
    if (path === FILES) continue;
    app.all(path.replaceAll(/\{(\w+)\}/g, ":$1"), createDispatcher(routes, handlers, context));
  }
  app.notFound(() => {
    throw new AppError("not_found", "Cannot find anything at this address", {
      hint: "See GET /describe and /openapi.json.",
    });
  });
  return app;
}

/** The route template of a path, for the log: never the path itself (report 53). */
function templateOf(path: string): string {
  if (path.startsWith(FS_PREFIX)) return FILES;
  for (const template of routesByPath().keys()) {
    if (new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)) return template;
  }
  return "unmatched";
}

/** Returns the handler of all requests. */
export function createHandler(context: Context): RequestHandler {
  const app = createRouter(context);
  const { log, config } = context;
  const hasCors = config.corsOrigins.length > 0;
  const fileOptions = {
    files: context.files,
    refuseUnknown: context.identity.refuseUnknown.bind(context.identity),
  };
  app.onError((error) => {
    throw error;
  });

  const refuse = async (error: unknown, request: Request, path: string): Promise<Response> => {
    const response = toProblem(error, { method: request.method, route: templateOf(path) }, log);
    // Of a client that fell silent there is nothing to wait for.
    const silent = error instanceof AppError && error.code === "request_timeout";
    if (request.body !== null && !silent) await drainBody(request);
    return response;
  };

  const answer = async (request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>): Promise<Response> => {
    let path = "";
    try {
      const target = readTarget(request);
      path = target.path;
      const isCoded = requirePlainFraming(request.headers);
      // Bytes are most of the traffic: one comparison finds their route, so they do not pay for the router.
      if (!path.startsWith(FS_PREFIX)) {
        return closeAfterCoding(request, await app.fetch(request, { target, info }));
      }
      if (hasCors && isPreflight(request)) return toPreflight(request, config.corsOrigins);
      const response = await serveFile(
        request,
        target,
        factsOf(request, info, context.serverPort()),
        fileOptions,
      );
      if (isCoded) closeAfterCoding(request, response);
      return hasCors ? addCorsHeaders(request, response, config.corsOrigins) : response;
    } catch (error) {
      const response = closeAfterCoding(request, await refuse(error, request, path));
      return hasCors && path.startsWith(FS_PREFIX)
        ? addCorsHeaders(request, response, config.corsOrigins)
        : response;
    }
  };

  const answerAndLog: RequestHandler = async (request, info) => {
    const startMs = performance.now();
    const response = await answer(request, info);
    log.debug("request", {
      method: toLoggedMethod(request.method),
      route: templateOf(URL.parse(request.url)?.pathname ?? ""),
      status: response.status,
      ms: Math.round((performance.now() - startMs) * 10) / 10,
    });
    return response;
  };
  return (request, info) => log.level === "debug" ? answerAndLog(request, info) : answer(request, info);
}
