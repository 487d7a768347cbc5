/** What the operator reads when the server starts: what is served, who is trusted, how to begin. */
import type { AmbientTrust } from "./identity.ts";

/** What the banner tells. */
export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  /** The address that was asked for, as `--host` says it. */
  readonly host: string;
  readonly publicUrl?: string;
  readonly dataFolder: string;
  /** Where the records are, without any secret. */
  readonly records: string;
  readonly shared: boolean;
  readonly containment: "kernel" | "portable";
  readonly ambientTrust: AmbientTrust;
  /** Whether the admin token was made at this start. */
  readonly newAdminToken: boolean;
}

function describeTrust({ ambientTrust }: BannerFacts): string[] {
  switch (ambientTrust) {
    case "on":
      return [
        "  trust     programs of this server's own user on this machine are the operator, without a token.",
        "            A proxy or tunnel that runs as the same user and forwards to this port without saying so",
        "            would make its clients the operator too: run it as another user, or use --trust-loopback=false.",
      ];
    case "on-unchecked":
      return [
        "  trust     every program on this machine is the operator, without a token: the user behind a connection",
        "            cannot be told here. Use --trust-loopback=false unless you are alone on it.",
      ];
    case "off":
      return ["  trust     nobody is trusted by place; send the admin token or an agent's key"];
  }
}

function describeReach({ host, publicUrl }: BannerFacts): string[] {
  if (host !== "0.0.0.0" && host !== "::") return [];
  const advice = publicUrl === undefined ? "; --public-url sets the address in links that are given out" : "";
  return [`  reach     every address of this machine (${host})${advice}`];
}

/** Returns the lines of the banner. */
export function toBanner(facts: BannerFacts): string[] {
  const base = facts.publicUrl ?? facts.url;
  return [
    `String ${facts.version} listens on ${facts.url}${
      facts.publicUrl === undefined ? "" : ` (${facts.publicUrl})`
    }`,
    ...describeReach(facts),
    `  data      ${facts.dataFolder}`,
    `  records   ${facts.records}${facts.shared ? " (shared)" : ""}`,
    `  files     contained ${
      facts.containment === "kernel" ? "by the kernel" : "by checks of each folder (portable)"
    }`,
    ...describeTrust(facts),
    `  token     ${facts.newAdminToken ? "made now: " : ""}<data>/admin.token`,
    "",
    `  Begin:    curl ${base}/`,
    "            says how to pair a program with an agent, ready to paste",
  ];
}
