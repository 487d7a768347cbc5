/** What the tests of trust share: other users of this machine, what the server knows afterwards. */
import { expect } from "../helpers/expect.ts";
import type { TestServer } from "../helpers/server.ts";
import { canRun, type ToolRun } from "../helpers/tools.ts";

/** A user that owns nothing here. */
export const NOBODY = 65534;
/** Whether this test can run programs as another user. */
export const HAS_OTHER_USERS = Deno.build.os === "linux" && Deno.uid() === 0;
/** What a skipped test says when it cannot, or when that user cannot run the program. */
export const NEEDS_OTHER_USERS = "running this program as another user needs root on Linux, and the program";
/** Whether there is a Node.js. */
export const HAS_NODE = await canRun("node", "--version");
/** What a skipped test says when there is none. */
export const NEEDS_NODE = "there is no Node.js here";

/** Runs a command as `NOBODY`, in a folder that it can be in. */
export async function asNobody(...command: string[]): Promise<ToolRun> {
  const { code, stdout, stderr } = await new Deno.Command(command[0] ?? "", {
    args: command.slice(1),
    uid: NOBODY,
    gid: NOBODY,
    cwd: "/",
    clearEnv: true,
    env: { PATH: Deno.env.get("PATH") ?? "" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** Returns whether `NOBODY` can run a command here: it may lie in another user's home. */
export async function nobodyCanRun(...command: string[]): Promise<boolean> {
  if (!HAS_OTHER_USERS) return false;
  try {
    return (await asNobody(...command)).code === 0;
  } catch {
    return false; // no such program here, or none that it may run
  }
}

/** Returns the ids of the agents that the server knows, asked with its token. */
export async function agentIds(server: TestServer): Promise<string[]> {
  const { body } = await server.admin("GET", "/agents");
  return (body["agents"] as { agent_id: string }[]).map(({ agent_id }) => agent_id);
}

/** Fails unless an answer is a refusal with this status and reason and shows nothing of the agents. */
export function expectRefusal(
  answer: { status: number; body: string },
  status: number,
  reason: string,
  about?: string,
): void {
  expect([answer.status, reasonIn(answer.body)], about).toEqual([status, reason]);
  expect(answer.body).not.toContain("agent_id");
}

/** Returns the `reason` in a body, or the body where it has none. */
export function reasonIn(body: string): string {
  return /"reason":"(\w+)"/.exec(body)?.[1] ?? body;
}

/** Returns an IPv4 address of this machine that is no loopback one, where it has one. */
export function outsideAddress(): string | undefined {
  return Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  )
    ?.address;
}
