/**
 * Keeps web pages away from the planes that a browser's user, but not the page, may reach.
 *
 * A page can make its own name resolve to this machine, or post a form to it; it cannot forge `Host`, `Origin` or
 * `Sec-Fetch-Site`. Source: architecture.md "The guard"; report 49.
 */
import { isIpLiteral, isLoopbackName, tryParseHost } from "../base/addresses.ts";
import { AppError } from "../base/errors.ts";

/** Names under which this server may be called. */
export interface GuardOptions {
  /** With scheme, without a slash at the end. */
  readonly publicUrl?: string;
  readonly allowedHosts: readonly string[];
}

/** Decides by headers alone. */
export class Guard {
  readonly #publicOrigin: string | undefined;
  readonly #hosts: ReadonlySet<string>;

  constructor(options: GuardOptions) {
    const url = options.publicUrl === undefined ? undefined : new URL(options.publicUrl);
    this.#publicOrigin = url?.origin;
    this.#hosts = new Set([
      ...options.allowedHosts.map((host) => host.toLowerCase()),
      ...(url === undefined ? [] : [url.hostname.toLowerCase()]),
    ]);
  }

  /** Returns whether a `Host` header names this server: an address, a loopback name or a configured name. */
  isOwnHost(hostHeader: string | null): boolean {
    const host = tryParseHost(hostHeader ?? "");
    if (host === undefined) return false;
    return isIpLiteral(host.name) || isLoopbackName(host.name) || this.#hosts.has(host.name) ||
      this.#hosts.has(`${host.name}:${host.port}`);
  }

  /** Throws `cross_site` when a page of another origin sends this request. */
  refuseForeignPage(header: (name: string) => string | null): void {
    const site = header("sec-fetch-site");
    if (site !== null && site !== "same-origin" && site !== "none") {
      throw new AppError("cross_site", "Cannot serve this to a page of another site");
    }
    const origin = header("origin");
    if (origin !== null && !this.#isOwnOrigin(origin, header("host"))) {
      throw new AppError("cross_site", "Cannot serve this to a page of another origin");
    }
  }

  #isOwnOrigin(origin: string, hostHeader: string | null): boolean {
    if (origin === this.#publicOrigin) return true;
    if (!this.isOwnHost(hostHeader)) return false;
    const host = (hostHeader ?? "").toLowerCase();
    return origin.toLowerCase() === `http://${host}` || origin.toLowerCase() === `https://${host}`;
  }

  /** Throws `host_not_allowed` when the `Host` header is foreign. */
  refuseForeignHost(hostHeader: string | null): void {
    if (this.isOwnHost(hostHeader)) return;
    throw new AppError("host_not_allowed", "Cannot serve this under the name in the Host header");
  }
}
