/** What an operator and the bearer of a capability ask of a running server, over its socket. */
import { join } from "../../base/std.ts";
import { within } from "./deadline.ts";

/** An answer with its body read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as a JSON object; empty when it is none. */
  readonly body: Record<string, unknown>;
}

/** A capability as it was minted. */
export interface Minted {
  readonly token_id: string;
  readonly secret: string;
}

/** What may be said of a grant; the whole workspace of `eve`, all verbs, one hour otherwise. */
export interface GrantChanges {
  readonly agent_id?: string;
  readonly path_prefix?: string;
  readonly verbs?: readonly string[];
  readonly ttl_ms?: number;
  readonly single_use?: boolean;
}

function toObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
  } catch {
    return {}; // bytes, or nothing
  }
}

/** Fetches and reads an answer, within the deadline. */
export async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  const asked = (async () => {
    const response = await fetch(url, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: toObject(text) };
  })();
  return await within(`an answer to ${init.method ?? "GET"} ${new URL(url).pathname}`, asked);
}

/** Speaks with one server as its operator. */
export class Operator {
  /** @param token The admin token; without it the server has to trust this process by its user. */
  constructor(readonly url: string, readonly token?: string) {}

  /** Returns the operator of a server by the token in its data folder. */
  static async of(server: { readonly url: string; readonly dataFolder: string }): Promise<Operator> {
    return new Operator(server.url, (await Deno.readTextFile(join(server.dataFolder, "admin.token"))).trim());
  }

  /** Calls a route of the admin plane. */
  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return ask(this.url + path, {
      method,
      headers: {
        ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Makes sure that an agent is there. */
  async pair(agentId = "eve", extras: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return expectStatus(await this.call("POST", "/agents", { agent_id: agentId, ...extras }), 200).body;
  }

  /** Mints a capability of an agent that is there. */
  async mint(changes: GrantChanges = {}): Promise<Minted> {
    const { body } = expectStatus(
      await this.call("POST", "/capabilities", {
        agent_id: "eve",
        path_prefix: "",
        verbs: ["PUT", "GET", "DELETE", "STAT"],
        ttl_ms: 3_600_000,
        ...changes,
      }),
      201,
    );
    return { token_id: String(body["token_id"]), secret: String(body["secret"]) };
  }

  /** Revokes a capability. */
  async revoke(tokenId: string): Promise<void> {
    expectStatus(await this.call("DELETE", `/capabilities/${tokenId}`), 200);
  }
}

/** Returns the answer if it has that status, and fails with its text otherwise. */
export function expectStatus(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  throw new Error(`Expected ${status}, got ${answer.status}: ${answer.text}`);
}

/** Returns the presigned URL of a file. */
export function toLink(serverUrl: string, path: string, secret: string): string {
  return `${serverUrl}/fs/${path}?cap=${secret}`;
}

/** Puts a file by its presigned URL. */
export function put(url: string, body: BodyInit, headers: Record<string, string> = {}): Promise<Answer> {
  return ask(url, { method: "PUT", body, headers });
}
