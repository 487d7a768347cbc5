/**
 * Keeps one request's fault from ending the process: what nobody caught is logged, and the server goes on.
 *
 * A response body that fails while it streams surfaces here, outside of any handler. Source: report 40.
 */
import type { Log } from "../base/log.ts";
import { describeFault } from "./fault.ts";

/** Listens for faults that nobody caught, until the returned value is disposed of. */
export function installCrashGuard(log: Log): Disposable {
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    log.error("a promise was rejected and nobody was waiting", describeFault(event.reason));
  };
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    log.error("an error was thrown and nobody caught it", describeFault(event.error));
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  globalThis.addEventListener("error", onError);
  return {
    [Symbol.dispose]() {
      globalThis.removeEventListener("unhandledrejection", onRejection);
      globalThis.removeEventListener("error", onError);
    },
  };
}
