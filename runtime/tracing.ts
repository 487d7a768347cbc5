/**
 * Keeps secrets in URLs out of traces: the runtime's own tracing records each request's URL whole, and nothing that a
 * handler does takes it back. So the server does not start while it is on. Source: report M2; architecture.md "Errors".
 */
import { OperatorError } from "../base/operator_error.ts";

/** Reads a switch as the runtime does: anything but `true` and `false` is not set. */
function readSwitch(text: string | undefined): boolean | undefined {
  const lower = text?.toLowerCase();
  return lower === "true" ? true : lower === "false" ? false : undefined;
}

/** Refuses (OperatorError `usage`) an environment in which the runtime traces requests. Its metrics may stay on. */
export function refuseTracing(env: Readonly<Record<string, string | undefined>>): void {
  if (readSwitch(env["OTEL_SDK_DISABLED"])) return;
  if (!(readSwitch(env["OTEL_DENO_TRACING"]) ?? readSwitch(env["OTEL_DENO"]) ?? false)) return;
  throw new OperatorError(
    "usage",
    "Cannot serve while the runtime traces requests: the traces would hold the secrets of presigned links",
    "Set OTEL_DENO_TRACING=false; metrics need only OTEL_DENO=true",
  );
}
