/**
 * Webhook tokens: derived from the secret key, so that one can be shown again and never has to be stored.
 *
 * Source: architecture.md "Records" (`secret.key`); SYS-AG-05.
 */
import { encodeBase64Url } from "../base/base64url.ts";
import { hashSecret } from "../caps/secret.ts";

/** Makes the webhook tokens of one installation. */
export class WebhookTokens {
  readonly #key: Promise<CryptoKey>;

  /** `secretKey` is the installation's 32-byte key. */
  constructor(secretKey: Uint8Array<ArrayBuffer>) {
    this.#key = crypto.subtle.importKey("raw", secretKey, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  }

  /** Returns the token of an agent's incarnation after `counter` rotations: 43 characters of base64url. */
  async derive(incarnation: string, counter: number): Promise<string> {
    const text = new TextEncoder().encode(`string webhook\n${incarnation}\n${counter}`);
    return encodeBase64Url(new Uint8Array(await crypto.subtle.sign("HMAC", await this.#key, text)));
  }

  /** Returns the hash under which a token is stored and looked up, or undefined for what can be no token. */
  hash(token: string): string | undefined {
    return /^[A-Za-z0-9_-]{43}$/.test(token) ? hashSecret(token) : undefined;
  }
}
