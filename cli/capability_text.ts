/** Capabilities as text. Pure. Source: System API, "Minting" and the worked example: the very lines of the seed. */
import { textField, textsField } from "./fields.ts";
import { toTable } from "./table.ts";

type Answer = Record<string, unknown>;

function toScope(record: Answer): string {
  return textField(record, "path_prefix") || "(whole workspace)";
}

function toVerbs(record: Answer): string {
  return textsField(record, "verbs").map((verb) => verb.toUpperCase()).join(", ");
}

/** Returns the four lines that a mint prints; the only ones that ever show the secret. */
export function toMintedLines(minted: Answer): string[] {
  const singleUse = minted["single_use"] === true ? "   single-use" : "";
  return [
    `Minted capability ${textField(minted, "token_id")} into workspace '${textField(minted, "agent_id")}':`,
    `  scope:   ${toScope(minted)} [${toVerbs(minted)}]`,
    `  expires: ${textField(minted, "expires_at")}${singleUse}`,
    `  secret: ${textField(minted, "secret")}`,
  ];
}

/** Returns the lines of a listing: the heading, and a table where there is anything. */
export function toListingLines(records: readonly Answer[]): string[] {
  const heading = `Capabilities (${records.length}):`;
  if (records.length === 0) return [heading];
  const rows = records.map((record) => [
    textField(record, "token_id"),
    textField(record, "agent_id"),
    textField(record, "status"),
    toVerbs(record),
    textField(record, "expires_at"),
    record["single_use"] === true ? "once" : "",
    toScope(record),
  ]);
  return [heading, ...toTable(["ID", "AGENT", "STATUS", "VERBS", "EXPIRES", "USE", "SCOPE"], rows)];
}
