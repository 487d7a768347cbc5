/** Reading what `strace -f -y` wrote: calls in the order in which they began and ended. */

/** One system call. */
export interface SystemCall {
  readonly name: string;
  /** Arguments as strace shows them, with the path behind each descriptor. */
  readonly args: string;
  /** The line on which it began; lines of all threads are in the order of time. */
  readonly begunAt: number;
  /** The line on which it returned: the same one unless another thread came in between. */
  endedAt: number;
  /** What it returned; undefined for one that never did. */
  result: string | undefined;
}

const WHOLE = /^(\d+) +\S+ (\w+)\((.*)\) += (.*)$/;
const UNFINISHED = /^(\d+) +\S+ (\w+)\((.*) <unfinished \.\.\.>$/;
const RESUMED = /^(\d+) +\S+ <\.\.\. (\w+) resumed>(.*)\) += (.*)$/;

/** Returns the calls of a trace that was made with `-f -tt`; what is no call (signals, exits) is left out. */
export function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const open = new Map<string, SystemCall>();
  text.split("\n").forEach((line, at) => {
    const resumed = RESUMED.exec(line);
    if (resumed !== null) {
      const [, thread = "", name = "", , result = ""] = resumed;
      const call = open.get(`${thread} ${name}`);
      if (call !== undefined) Object.assign(call, { endedAt: at, result });
      open.delete(`${thread} ${name}`);
      return;
    }
    const unfinished = UNFINISHED.exec(line);
    const [, thread = "", name, args = "", result] = unfinished ?? WHOLE.exec(line) ?? [];
    if (name === undefined) return;
    const call: SystemCall = { name, args, begunAt: at, endedAt: unfinished ? Infinity : at, result };
    calls.push(call);
    if (unfinished !== null) open.set(`${thread} ${name}`, call);
  });
  return calls;
}
