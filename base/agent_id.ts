/** The names that agents may have. Source: SYS-AG-02; report 22. */

/** What an agent id may be, for people. */
export const AGENT_ID_RULE =
  "1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit, without '..'";

/** The same as a pattern, but for the `..`. */
export const AGENT_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Returns whether `text` can be the id of an agent: one plain segment of a path, in lower case. */
export function isAgentId(text: string): boolean {
  return AGENT_ID.test(text) && !text.includes("..");
}
