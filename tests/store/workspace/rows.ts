import type { MarkRecords } from "../../../store/workspace/types.ts";

/** Rows of marks in memory: the seam's own contract, observable. */
export class Rows implements MarkRecords {
  readonly kept = new Set<string>();
  set(workspace: string, path: string): Promise<void> {
    this.kept.add(`${workspace}:${path}`);
    return Promise.resolve();
  }
  clear(workspace: string, path: string): Promise<void> {
    this.kept.delete(`${workspace}:${path}`);
    return Promise.resolve();
  }
  has(workspace: string, path: string): Promise<boolean> {
    return Promise.resolve(this.kept.has(`${workspace}:${path}`));
  }
}
