import { createSecret, PREFIX } from "../../base/ids.ts";
import { createCapabilitySecret, hashSecret, isSecretShaped, redact } from "../../caps/secret.ts";
import { expect } from "../helpers/expect.ts";

Deno.test("isSecretShaped() takes a fresh secret and nothing near it", () => {
  const { secret } = createCapabilitySecret();
  expect(isSecretShaped(secret)).toBe(true);
  const body = secret.slice(5);
  const near = [
    "",
    "caps_",
    body,
    secret.slice(0, -1),
    secret + "A",
    `cap_${body}A`,
    `CAPS_${body}`,
    `agk_${body}A`,
    `caps_${body.slice(1)}=`,
    `caps_${body.slice(1)}\n`,
    `caps_${body.slice(1)}é`,
    ` ${secret.slice(0, -1)}`,
  ];
  for (const text of near) expect(isSecretShaped(text), JSON.stringify(text)).toBe(false);
});

Deno.test("createCapabilitySecret() gives a secret that hashes to its hash, never twice the same", () => {
  const first = createCapabilitySecret(), second = createCapabilitySecret();
  expect(hashSecret(first.secret)).toBe(first.secretHash);
  expect(first.secretHash).toMatch(/^[0-9a-f]{64}$/);
  expect(first.secret === second.secret).toBe(false);
});

Deno.test("redact() leaves no secret of any kind in a text (SYS-ERR-03)", () => {
  for (const prefix of [PREFIX.capabilitySecret, PREFIX.adminToken, PREFIX.agentKey]) {
    const secret = createSecret(prefix);
    const contexts = [
      secret,
      `Bearer ${secret}`,
      `/fs/a.txt?cap=${secret}&x=1`,
      `"${secret}"`,
      `${secret},${createSecret(prefix)}`,
      `x${secret}`,
      `cut ${secret.slice(0, 30)}`,
    ];
    for (const text of contexts) {
      const redacted = redact(text);
      expect(redacted).not.toContain(secret.slice(prefix.length, prefix.length + 16));
      expect(redacted).toContain(`${prefix}…`);
    }
  }
});

Deno.test("redact() keeps what is no secret", () => {
  for (const text of ["", "caps_lock", "cap_0123456789abcdef", "the adm_ prefix", "/fs/in/report.pdf"]) {
    expect(redact(text)).toBe(text);
  }
});
