/**
 * The listener's life: listen, serve, drain, end. Knows nothing of routes.
 *
 * Source: architecture.md "Slow and silent clients" (`shutdown()` waits for a stalled upload for
 * good, so it is raced with a deadline).
 */
import type { Log } from "../base/log.ts";
import { OperatorError } from "../base/operator_error.ts";
import { installCrashGuard } from "./crash_guard.ts";
import { describeFault } from "./fault.ts";

/** Where a server listens. */
export interface Listening {
  /** An address that a client on this host can use, without a slash at its end. */
  readonly url: string;
  readonly hostname: string;
  readonly port: number;
}

/** What a server runs. */
export interface ServerOptions {
  readonly handler: (
    request: Request,
    info: Deno.ServeHandlerInfo<Deno.NetAddr>,
  ) => Response | Promise<Response>;
  /** IPv6 without brackets. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** How long running requests may take once a stop was asked for, whatever their clients do. */
  readonly graceMs: number;
  readonly log: Log;
  /** Called once the address is known. If it fails, the server stops and the failure is thrown. */
  readonly onListen?: (listening: Listening) => void | Promise<void>;
  /** Called when a drain begins, before the listener closes: health turns to 503, event streams end. */
  readonly onDrain?: () => void;
}

/** How a server ended. */
export const EXIT_CLEAN = 0;

type StopSignal = "SIGTERM" | "SIGINT";

/** By convention of shells, a process that a signal ended exits with 128 and the signal's number. */
const FORCED_EXIT: Readonly<Record<StopSignal, number>> = { SIGTERM: 143, SIGINT: 130 };

/** Returns the address for clients on this host: a wildcard becomes loopback, IPv6 gets its brackets. */
export function toLocalUrl(hostname: string, port: number): string {
  const reachable = hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "::1" : hostname;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

/** The answer to a fault that no route turned into one. It says nothing of the fault. */
function internalError(): Response {
  return Response.json(
    { error: "The server failed to answer this request", reason: "internal" },
    { status: 500, headers: { "cache-control": "no-store" } },
  );
}

function listen(options: ServerOptions): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve({
      hostname: options.host,
      port: options.port,
      onListen() {}, // Deno would print a line of its own
      onError(error) {
        options.log.error("request failed outside its route", describeFault(error));
        return internalError();
      },
    }, options.handler);
  } catch (error) {
    throw toOperatorError(options, error);
  }
}

function toOperatorError({ host, port }: ServerOptions, error: unknown): OperatorError {
  const what = `Cannot listen on "${host}" port ${port}`;
  if (error instanceof Deno.errors.AddrInUse) {
    return new OperatorError(
      "failed",
      `${what}: the port is in use`,
      "Stop the program that uses it, or choose another with --port (0 picks a free one)",
      error,
    );
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return new OperatorError(
      "failed",
      `${what}: this user may not use that port`,
      "Choose a port from 1024 up with --port",
      error,
    );
  }
  const why = error instanceof Error ? error.message : String(error);
  return new OperatorError("failed", `${what}: ${why}`, "Choose an address of this host with --host", error);
}

/** Signals that ask for a stop. Listens until disposed of. */
interface StopSignals extends Disposable {
  /** Begins a drain. */
  readonly first: Promise<StopSignal>;
  /** Ends it. */
  readonly second: Promise<StopSignal>;
}

function listenForSignals(): StopSignals {
  const first = Promise.withResolvers<StopSignal>();
  const second = Promise.withResolvers<StopSignal>();
  let asked = false;
  const stop = (signal: StopSignal) => () => {
    (asked ? second : first).resolve(signal);
    asked = true;
  };
  const handlers: [Deno.Signal, () => void][] = [["SIGINT", stop("SIGINT")]];
  if (Deno.build.os !== "windows") {
    handlers.push(["SIGTERM", stop("SIGTERM")]);
    handlers.push(["SIGHUP", () => {}]); // nothing to read anew yet, and a closed terminal is no stop
  }
  for (const [signal, handler] of handlers) Deno.addSignalListener(signal, handler);
  return {
    first: first.promise,
    second: second.promise,
    [Symbol.dispose]() {
      for (const [signal, handler] of handlers) Deno.removeSignalListener(signal, handler);
    },
  };
}

/** Returns "late" after `ms`, unless it is disposed of before. */
function deadline(ms: number): { readonly passed: Promise<"late"> } & Disposable {
  const { promise, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), ms);
  return { passed: promise, [Symbol.dispose]: () => clearTimeout(timer) };
}

async function drain(
  server: Deno.HttpServer<Deno.NetAddr>,
  options: ServerOptions,
  signals: StopSignals,
): Promise<number> {
  try {
    options.onDrain?.();
  } catch (error) {
    options.log.error("drain began badly", describeFault(error));
  }
  using limit = deadline(options.graceMs);
  const finished = server.shutdown().then(() => "finished" as const);
  const end = await Promise.race([finished, limit.passed, signals.second]);
  if (end === "finished") {
    options.log.info("stopped: every running request was answered");
    return EXIT_CLEAN;
  }
  if (end === "late") {
    options.log.warn("stopped: requests still running after the grace period were cut", {
      grace_ms: options.graceMs,
    });
    return EXIT_CLEAN;
  }
  options.log.warn("stopped at once: a second signal came", { signal: end });
  return FORCED_EXIT[end];
}

/**
 * Serves until a signal asks for a stop, and returns the exit code for the process.
 *
 * SIGTERM or SIGINT begins a drain: no new connections, running requests are finished, but never longer than
 * `graceMs`; a second one ends at once. Connections that are cut at the deadline end with the process, so the caller
 * must exit. Refuses (OperatorError) an address that cannot be listened on.
 */
export async function runServer(options: ServerOptions): Promise<number> {
  using _guard = installCrashGuard(options.log);
  using signals = listenForSignals();
  const server = listen(options);
  const { hostname, port } = server.addr;
  try {
    await options.onListen?.({ url: toLocalUrl(hostname, port), hostname, port });
  } catch (error) {
    await server.shutdown();
    throw error;
  }
  const signal = await Promise.race([
    signals.first,
    server.finished.then(() => "listener" as const),
  ]);
  options.log.info("stopping", {
    cause: signal,
    grace_ms: options.graceMs,
    hint: "a second signal ends at once",
  });
  return await drain(server, options, signals);
}
