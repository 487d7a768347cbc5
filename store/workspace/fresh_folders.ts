/**
 * Folders that uploads of this process have made and that are not durable yet.
 *
 * An upload into a folder that another one has just made must not be answered before the folder itself would survive a
 * power cut: it waits for the other one's sync.
 */
export class FreshFolders {
  readonly #pending = new Map<string, Set<Promise<void>>>();

  /** Announces folders made in a workspace; call what it returns when they are durable, or undone. */
  announce(workspaceKey: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const pending = this.#pending.get(workspaceKey) ?? new Set();
    this.#pending.set(workspaceKey, pending.add(promise));
    return () => {
      pending.delete(promise);
      if (pending.size === 0) this.#pending.delete(workspaceKey);
      resolve();
    };
  }

  /** Resolves when all that is announced now in a workspace has come to its end. Announce nothing while waiting. */
  async settled(workspaceKey: string): Promise<void> {
    const pending = this.#pending.get(workspaceKey);
    if (pending !== undefined) await Promise.all(pending);
  }
}
