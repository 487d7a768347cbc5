/**
 * Who is the operator, and which agent is this.
 *
 * A bearer token names its owner. Without one, a request from the server's own user on this machine is the
 * operator's, as long as nothing says that it was forwarded or sent by a web page. Source: architecture.md "Who is the
 * operator, and which agent is this".
 */
import { isLoopbackAddress, isLoopbackName, tryParseHost } from "../base/addresses.ts";
import { AppError } from "../base/errors.ts";
import { PREFIX } from "../base/ids.ts";
import { hashSecret } from "../caps/secret.ts";
import type { AgentRow } from "../store/database/agent_rows.ts";
import type { Clock } from "../base/clock.ts";
import { effectiveClient, FailedCredentials } from "./failed_credentials.ts";
import { type Connection, PeerUser } from "./peer_user.ts";

/** What identity needs to know of a request. */
export interface RequestFacts extends Connection {
  /** Returns a header's value, or null. */
  header(name: string): string | null;
}

/** Who sends a request on the admin and channel planes. */
export type Caller =
  | { readonly kind: "operator"; readonly by: "token" | "ambient" }
  | { readonly kind: "agent"; readonly agent: AgentRow };

/** What identity is made of. */
export interface IdentityOptions {
  readonly trustLoopback: "auto" | true | false;
  /** Whether something makes ambient trust unwise: a public URL, or commands that may run on the host. */
  readonly exposed: boolean;
  readonly trustedHops: number;
  readonly clock: Clock;
  /** Returns the SHA-256 of the admin token that is in force. */
  adminTokenHash(): Promise<string | undefined>;
  findAgentByKeyHash(hash: string): Promise<AgentRow | undefined>;
}

/** Headers that a proxy or tunnel adds; one of them, even an empty one, makes a request a stranger's. */
export const FORWARDING_HEADERS: readonly string[] = [
  "forwarded",
  "via",
  "x-forwarded",
  "x-forwarded-by",
  "x-forwarded-client-cert",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-method",
  "x-forwarded-path",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  "x-forwarded-scheme",
  "x-forwarded-server",
  "x-forwarded-ssl",
  "x-forwarded-uri",
  "x-forwarded-user",
  "client-ip",
  "proxy-client-ip",
  "wl-proxy-client-ip",
  "x-original-forwarded-for",
  "x-original-host",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-remote-addr",
  "x-remote-ip",
  "true-client-ip",
  "cdn-loop",
  "cf-connecting-ip",
  "cf-ray",
  "cf-visitor",
  "x-amz-cf-id",
  "fastly-client-ip",
  "fly-client-ip",
  "x-amzn-trace-id",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-envoy-external-address",
  "x-vercel-forwarded-for",
  "tailscale-user-login",
];

/** How ambient trust stands, for the banner and for each request. */
export type AmbientTrust = "on" | "on-unchecked" | "off";

/**
 * Returns how ambient trust stands where the peer's user can be told (`checkable`) or not.
 *
 * `true` lifts the conditions under which it is off, never the check itself where it can be made.
 */
export function decideAmbientTrust(
  { trustLoopback, exposed }: Pick<IdentityOptions, "trustLoopback" | "exposed">,
  checkable: boolean,
): AmbientTrust {
  const wanted = trustLoopback === true || (trustLoopback === "auto" && checkable && !exposed);
  return !wanted ? "off" : checkable ? "on" : "on-unchecked";
}

/** Names the sender of a request. */
export class Identity {
  readonly failures = new FailedCredentials();
  readonly ambientTrust: AmbientTrust;
  readonly #options: IdentityOptions;
  readonly #peerUser: PeerUser | undefined;

  private constructor(options: IdentityOptions, peerUser: PeerUser | undefined) {
    this.#options = options;
    this.#peerUser = peerUser;
    this.ambientTrust = decideAmbientTrust(options, peerUser !== undefined);
  }

  /** Finds out what this machine can tell, and returns the identity of this server. */
  static async create(options: IdentityOptions): Promise<Identity> {
    return new Identity(options, await PeerUser.create());
  }

  /**
   * Returns who sends this request, or undefined when it presents nothing and is not the operator's by place.
   *
   * Throws `unknown_token` or `rate_limited` for a bearer token that is nobody's: a wrong token is never mended by
   * where it came from.
   */
  async identify(facts: RequestFacts): Promise<Caller | undefined> {
    const authorization = facts.header("authorization");
    if (authorization !== null) return await this.#identifyBearer(authorization, facts);
    return await this.#isOperatorByPlace(facts) ? { kind: "operator", by: "ambient" } : undefined;
  }

  async #identifyBearer(authorization: string, facts: RequestFacts): Promise<Caller> {
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
    const hash = hashSecret(token);
    if (hash !== undefined && token.startsWith(PREFIX.adminToken)) {
      if (hash === await this.#options.adminTokenHash()) return { kind: "operator", by: "token" };
    } else if (hash !== undefined && token.startsWith(PREFIX.agentKey)) {
      const agent = await this.#options.findAgentByKeyHash(hash);
      if (agent !== undefined) return { kind: "agent", agent };
    }
    this.refuseUnknown(
      facts,
      "Cannot accept this token: it is neither the admin token nor an agent's key",
      "Check the token; on the server's own machine the operator's is in <data>/admin.token.",
    );
  }

  /** Counts an unknown credential and throws: `unknown_token`, or `rate_limited` when there were too many. */
  refuseUnknown(facts: RequestFacts, message: string, hint?: string): never {
    const client = effectiveClient(
      facts.peer.address,
      facts.header("x-forwarded-for"),
      this.#options.trustedHops,
    );
    const waitSeconds = this.failures.record(client, this.#options.clock.now());
    if (waitSeconds > 0) {
      throw new AppError(
        "rate_limited",
        "Cannot check this credential: too many unknown ones from this address",
        {
          retryAfterSeconds: waitSeconds,
        },
      );
    }
    throw new AppError("unknown_token", message, hint === undefined ? {} : { hint });
  }

  async #isOperatorByPlace(facts: RequestFacts): Promise<boolean> {
    if (this.ambientTrust === "off" || !isLoopbackAddress(facts.peer.address)) return false;
    if (facts.header("origin") !== null || facts.header("sec-fetch-site") !== null) return false;
    if (FORWARDING_HEADERS.some((name) => facts.header(name) !== null)) return false;
    const host = tryParseHost(facts.header("host") ?? "");
    if (host === undefined || !isLoopbackName(host.name)) return false;
    return this.#peerUser === undefined || await this.#peerUser.isSender(facts);
  }
}
