/** `/` until there are pages: says what runs here and how to begin, to a person and to an agent alike. */
import { VERSION } from "../base/version.ts";
import type { Context, Handler } from "./handler.ts";

const STEPS: readonly (readonly [string, (base: string) => string])[] = [
  [
    "Pair a program with an agent's workspace (on this machine, as the server's own user)",
    (base) =>
      `curl -X POST ${base}/agents -H 'content-type: application/json' -d '{"agent_id":"eve","capability":{"path_prefix":"inbox","verbs":["PUT","GET","STAT"],"ttl_ms":3600000}}'`,
  ],
  [
    "Move bytes with the secret that it answers",
    (base) => `curl -T report.pdf -H "Authorization: Bearer $SECRET" ${base}/fs/inbox/report.pdf`,
  ],
  ["See what this server can do", (base) => `curl ${base}/describe`],
];

function toText(base: string): string {
  const steps = STEPS.map(([title, command]) => `${title}:\n\n    ${command(base)}\n`).join("\n");
  return `# String ${VERSION}\n\nAn agent's home: files behind capabilities.\n\n${steps}`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll(
    '"',
    "&quot;",
  );
}

const STYLE =
  "body{font:1rem/1.6 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem;color:#1c1c1e;background:#fff}" +
  "h2{font-size:1.1rem}pre{padding:.8rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:.5rem;background:#f2f2f4}" +
  "@media(prefers-color-scheme:dark){body{color:#e8e8ea;background:#161618}pre{background:#232326}a{color:#8ab4ff}}";

function toHtml(base: string): string {
  const steps = STEPS.map(([title, command]) =>
    `<h2>${escapeHtml(title)}</h2><pre tabindex="0"><code>${escapeHtml(command(base))}</code></pre>`
  ).join("");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
    `<title>String</title><style>${STYLE}</style></head><body><main><h1>String ${VERSION}</h1>` +
    `<p>An agent's home: files behind capabilities. ` +
    `<a href="/describe">What it can do</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/health">Health</a></p>` +
    `${steps}</main></body></html>`;
}

/** Binds the handler of the start page. */
export function bindLanding({ publicBase }: Context): { landing: Handler } {
  return {
    async landing({ facts }) {
      const wantsHtml = /\btext\/html\b/i.test(facts.header("accept") ?? "");
      const bytes = new TextEncoder().encode(wantsHtml ? toHtml(publicBase()) : toText(publicBase()));
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(STYLE));
      const styleHash = btoa(String.fromCharCode(...new Uint8Array(hash)));
      return new Response(bytes, {
        headers: {
          "content-type": wantsHtml ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8",
          "content-length": String(bytes.length),
          "cache-control": "no-store, no-transform",
          "content-security-policy":
            `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
          "referrer-policy": "no-referrer",
          "vary": "Accept, Accept-Encoding",
          "x-content-type-options": "nosniff",
        },
      });
    },
  };
}
