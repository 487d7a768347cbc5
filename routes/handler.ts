/** What a route's handler gets, and what the handlers of one file promise. */
import type { Context as HonoContext } from "hono";
import type { Context } from "../runtime/context.ts";
import type { RequestFacts } from "../runtime/identity.ts";
import type { Caller } from "../runtime/identity.ts";
import type { Target } from "./target.ts";

/** What the listener adds to a request before the router sees it. */
export interface RequestBindings {
  readonly target: Target;
  readonly info: Deno.ServeHandlerInfo<Deno.NetAddr>;
}

/** The router's own context. */
export type RouterContext = HonoContext<{ Bindings: RequestBindings }>;

/** A request on its way through a handler. */
export interface RouteRequest {
  readonly raw: Request;
  readonly target: Target;
  readonly facts: RequestFacts;
  /** Returns a path parameter, decoded. */
  param(name: string): string;
}

/** Answers one operation; what it throws becomes a problem. */
export type Handler = (request: RouteRequest) => Response | Promise<Response>;

/** Answers one operation of the admin or channel plane, for a caller who has been named. */
export type CallerHandler = (request: RouteRequest, caller: Caller) => Response | Promise<Response>;

/** What handlers are made of. */
export type { Context };

/** Returns what identity needs to know of a request. */
export function factsOf(
  raw: Request,
  info: Deno.ServeHandlerInfo<Deno.NetAddr>,
  serverPort: number,
): RequestFacts {
  return {
    // Asked for by few; the runtime does work for each.
    get peer() {
      return { address: info.remoteAddr.hostname, port: info.remoteAddr.port };
    },
    get signal() {
      return raw.signal;
    },
    serverPort,
    header: (name) => raw.headers.get(name),
  };
}
