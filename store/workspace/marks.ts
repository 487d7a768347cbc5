/**
 * Marks of provenance: on the file itself where its file system can carry one, else a row by path.
 *
 * Every order below errs to the safe side: a crash in between may leave a mark too many, never one too few.
 */
import type { CanonicalPath } from "../../base/paths.ts";
import type { Log } from "../../base/log.ts";
import type { StagedFile } from "./opener.ts";
import type { MarkRecords, WorkspaceRef } from "./types.ts";

/** Marks of all workspaces. */
export class Marks {
  /** @param records The rows. @param options.rowsOnly Never uses attributes of files. */
  constructor(
    private readonly records: MarkRecords,
    private readonly options: { rowsOnly: boolean; log: Log },
  ) {}

  /** Puts the mark on a staged file itself; false where a row must say it. */
  putOn(staged: StagedFile): boolean {
    return !this.options.rowsOnly && staged.setMark();
  }

  /**
   * Writes a row for bytes from outside, before they become visible.
   *
   * @returns What to run when they do not become visible after all.
   */
  async record(workspace: WorkspaceRef, path: CanonicalPath): Promise<() => Promise<void>> {
    if (await this.records.has(workspace.key, path)) return () => Promise.resolve();
    await this.records.set(workspace.key, path);
    return () => this.clear(workspace, path);
  }

  /** Drops the row of a path whose bytes were replaced by the agent's own, or removed. Never throws. */
  async clear(workspace: WorkspaceRef, path: CanonicalPath): Promise<void> {
    try {
      if (await this.records.has(workspace.key, path)) await this.records.clear(workspace.key, path);
    } catch (error) {
      // The change itself is done and must be reported as done; the path stays marked, which only forbids.
      this.options.log.warn("a mark of provenance was not cleared", {
        agent: workspace.agentId,
        error: error instanceof Error ? error.name : "unknown",
      });
    }
  }

  /** Returns whether there is a row for the path. */
  has(workspace: WorkspaceRef, path: CanonicalPath): Promise<boolean> {
    return this.records.has(workspace.key, path);
  }
}
