/** How much memory a process holds, as the kernel counts it (Linux). */

/** Whether that can be read here. */
export const CAN_READ_MEMORY = Deno.build.os === "linux";
export const NEEDS_PROC = "memory is read from /proc, which only Linux has";

async function readStatus(pid: number, field: string): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  if (kib === undefined) throw new Error(`The kernel does not tell ${field}`);
  return Number(kib) / 1024;
}

/** Runs `work` and returns by how many MiB the process's memory rose above where it was, at its peak. */
export async function peakGrowthMiB(pid: number, work: () => Promise<void>): Promise<number> {
  const beforeMiB = await readStatus(pid, "VmRSS");
  await Deno.writeTextFile(`/proc/${pid}/clear_refs`, "5"); // the peak begins anew
  await work();
  return Math.max(0, await readStatus(pid, "VmHWM") - beforeMiB);
}
