/** curl, as a stranger would use it. */
import { runTool } from "./tools.ts";

/** What curl saw. */
export interface CurlAnswer {
  /** curl's own exit code: 0 when it could read the answer. */
  readonly exit: number;
  readonly status: number;
  readonly body: string;
}

/** Runs `curl -sS` with these arguments and returns status and body. */
export async function curl(...args: string[]): Promise<CurlAnswer> {
  const ran = await runTool(["curl", "-sS", "--max-time", "300", "-w", "\n%{http_code}", ...args]);
  const cut = ran.out.lastIndexOf("\n");
  return { exit: ran.code, status: Number(ran.out.slice(cut + 1)), body: ran.out.slice(0, cut) };
}
