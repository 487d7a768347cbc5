/**
 * What a capability can do: move bytes in and out of a workspace.
 *
 * One way for every verb: the capability decides, the store does it, a single use is spent at the last moment before
 * anyone can see the effect. Nothing here knows HTTP beyond the words of conditional requests.
 * Source: System API, "fs verbs"; SYS-FS, SYS-ERR-04; architecture.md "Capabilities".
 */
import type { Clock } from "../base/clock.ts";
import { evaluateRead, ifRangeHolds, parseReadConditions, parseWriteConditions } from "../base/conditions.ts";
import { AppError } from "../base/errors.ts";
import type { CanonicalPath } from "../base/paths.ts";
import { parseRange } from "../base/ranges.ts";
import type { Capability, Verb } from "../caps/model.ts";
import type { CapabilityService } from "../caps/service.ts";
import type {
  Bytes,
  FileVersion,
  MaybePromise,
  OpenedFile,
  Upload,
  WorkspaceRef,
  WorkspaceStore,
} from "../store/workspace/types.ts";
import type { Agents } from "./agents.ts";
import type { Audit, AuditEntry } from "./audit.ts";

/** A request that its capability allows. */
export interface Access {
  readonly capability: Capability;
  readonly path: CanonicalPath;
  readonly verb: Verb;
  /** When the request began, Unix milliseconds: the moment at which expiry is judged. */
  readonly begunMs: number;
}

/** Returns a request header, or null. */
export type HeaderReader = (name: string) => string | null;

/** What a read comes to. `file` is open in `whole` and `part` and must be used or closed. */
export type ReadOutcome =
  | { readonly kind: "not_modified"; readonly version: FileVersion }
  | { readonly kind: "whole"; readonly file: OpenedFile }
  | { readonly kind: "part"; readonly file: OpenedFile; readonly start: number; readonly end: number };

/** What the file service works with. */
export interface FilesOptions {
  readonly capabilities: CapabilityService;
  readonly agents: Agents;
  readonly store: WorkspaceStore;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly maxBytes: number;
}

/** Moves bytes for capabilities. */
export class Files {
  readonly #options: FilesOptions;

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  /**
   * Decides whether `secret` allows `verb` on the raw path of a request target.
   *
   * Throws in the order of SYS-ERR-04: 401, 400, 403. Synchronous when the capability is in memory.
   */
  authorise(secret: string | undefined, verb: Verb, rawPath: string): MaybePromise<Access> {
    const begunMs = this.#options.clock.now();
    try {
      const decided = this.#options.capabilities.authorise(secret, verb, rawPath, begunMs);
      if (!(decided instanceof Promise)) return toAccess(decided, verb, begunMs);
      return decided.then((permission) => toAccess(permission, verb, begunMs)).catch((error) => {
        this.#noteRefusal(error, secret, verb);
        throw error;
      });
    } catch (error) {
      this.#noteRefusal(error, secret, verb);
      throw error;
    }
  }

  /** Puts a refusal on record; one without a known capability is only counted. */
  async #noteRefusal(error: unknown, secret: string | undefined, verb: Verb): Promise<void> {
    if (!(error instanceof AppError) || error.status >= 500) return;
    const { audit, capabilities } = this.#options;
    // Nobody's secret: there is nothing to look up, and a guess must not cost a second look at the database.
    if (error.code === "unknown_token" || secret === undefined) return audit.count("", error.code);
    try {
      const capability = await capabilities.lookup(secret);
      if (capability === undefined) audit.count("", error.code);
      else audit.refusal(refusalOf(capability, verb, error));
    } catch {
      // The database did not answer: the refusal stands, and the audit misses one entry.
      audit.count("", error.code);
    }
  }

  /** Puts on record that a capability was stopped on its way: by a link, a prefetch, a revocation meanwhile. */
  noteStop({ capability, verb }: Access, error: unknown): void {
    if (error instanceof AppError && (error.status === 401 || error.status === 403)) {
      this.#options.audit.refusal(refusalOf(capability, verb, error));
    }
  }

  /** Refuses conditions that the store cannot hold against its files: 501, never ignored (SYS-FS-10). */
  #requireConditions(header: HeaderReader): void {
    if (this.#options.store.abilities.conditionalRequests) return;
    const asked = CONDITIONS.find((name) => header(name) !== null);
    if (asked === undefined) return;
    throw new AppError(
      "not_supported",
      `Cannot honour '${asked}': the store behind this workspace has no versions`,
    );
  }

  #workspace({ capability }: Access): MaybePromise<WorkspaceRef> {
    return this.#options.agents.workspaceOfIncarnation(capability.agentId, capability.incarnation);
  }

  /** Returns the current version of a file, or that the client has it. A single use is spent if STAT is all it can do. */
  async stat(access: Access, header: HeaderReader): Promise<{ notModified: boolean; version: FileVersion }> {
    refusePrefetch(access, header);
    this.#requireConditions(header);
    const { capability } = access;
    const version = await this.#options.store.stat(await this.#workspace(access), access.path);
    const notModified = this.#evaluate(version, header) === "not_modified";
    if (capability.singleUse && capability.verbs.size === 1 && !notModified) await this.#spend(access);
    else this.#options.audit.count(capability.tokenId, "STAT");
    return { notModified, version };
  }

  /**
   * Opens a file for reading as the request's conditions and range ask. A single use gives the whole file, once.
   *
   * At once where capability and file are in memory: most requests are such.
   */
  read(access: Access, header: HeaderReader): MaybePromise<ReadOutcome> {
    refusePrefetch(access, header);
    this.#requireConditions(header);
    const workspace = this.#workspace(access);
    if (workspace instanceof Promise) return workspace.then((found) => this.#open(access, found, header));
    return this.#open(access, workspace, header);
  }

  #open(access: Access, workspace: WorkspaceRef, header: HeaderReader): MaybePromise<ReadOutcome> {
    const file = this.#options.store.open(workspace, access.path);
    return file instanceof Promise
      ? file.then((opened) => this.#hand(access, opened, header))
      : this.#hand(access, file, header);
  }

  /** Decides what of an open file is handed over; closes it whenever that is nothing. */
  #hand(access: Access, file: OpenedFile, header: HeaderReader): MaybePromise<ReadOutcome> {
    try {
      if (this.#evaluate(file.version, header) === "not_modified") {
        file.close();
        return { kind: "not_modified", version: file.version };
      }
      if (access.capability.singleUse) return this.#handOnce(access, file);
      const outcome = chooseRange(file, header);
      this.#options.audit.count(access.capability.tokenId, "GET");
      return outcome;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  async #handOnce(access: Access, file: OpenedFile): Promise<ReadOutcome> {
    try {
      await this.#spend(access);
      return { kind: "whole", file };
    } catch (error) {
      file.close();
      throw error;
    }
  }

  #evaluate(version: FileVersion, header: HeaderReader): "proceed" | "not_modified" {
    const outcome = evaluateRead(parseReadConditions(header), version);
    if (outcome === "precondition_failed") {
      throw new AppError(
        "precondition_failed",
        "Cannot serve this file: the condition of the request does not hold",
      );
    }
    return outcome;
  }

  /**
   * Takes a body and puts it in place: all of it or nothing, durable when it resolves.
   *
   * `declaredBytes` is the declared length. When it throws, the body may still be unread: the caller drains it.
   */
  async write(
    access: Access,
    header: HeaderReader,
    body: ReadableStream<Bytes> | null,
    declaredBytes: number | undefined,
  ): Promise<{ created: boolean; bytes: number; version: FileVersion }> {
    const { capability } = access;
    const { capabilities, maxBytes } = this.#options;
    this.#requireConditions(header);
    if (declaredBytes !== undefined && declaredBytes > maxBytes) {
      throw new AppError("too_large", `Cannot store ${declaredBytes} bytes: the limit is ${maxBytes}`);
    }
    const workspace = await this.#workspace(access);
    if (!capability.singleUse) {
      return await this.#upload(access, header, workspace, body, declaredBytes, undefined);
    }
    const lease = await capabilities.acquireLease(capability, access.begunMs);
    try {
      return await this.#upload(access, header, workspace, body, declaredBytes, lease.id);
    } finally {
      await lease.release();
    }
  }

  async #upload(
    access: Access,
    header: HeaderReader,
    workspace: WorkspaceRef,
    body: ReadableStream<Bytes> | null,
    declaredBytes: number | undefined,
    leaseId: string | undefined,
  ): Promise<{ created: boolean; bytes: number; version: FileVersion }> {
    const { store, audit, maxBytes, capabilities } = this.#options;
    const { capability, path } = access;
    const conditions = parseWriteConditions(header);
    const upload: Upload = await store.beginUpload(workspace, path, {
      maxBytes,
      ...(declaredBytes === undefined ? {} : { declaredBytes }),
      fromOutside: capability.author === "outside",
    });
    try {
      const bytes = await upload.receive(body);
      const { created, version } = await upload.commit({
        conditions,
        beforeVisible: () =>
          capability.singleUse
            ? this.#spend(access, leaseId)
            : capabilities.requireLive(capability, access.begunMs),
      });
      audit.record({ ...auditOf(access), action: "fs.put", outcome: "ok", detail: { bytes, created } });
      return { created, bytes, version };
    } catch (error) {
      await upload.abort();
      throw error;
    }
  }

  /** Removes a file; a single use is spent only when there was one. */
  async remove(access: Access, header: HeaderReader): Promise<{ existed: boolean }> {
    const { capability, path } = access;
    const { store, audit, capabilities } = this.#options;
    this.#requireConditions(header);
    const outcome = await store.remove(await this.#workspace(access), path, {
      conditions: parseWriteConditions(header),
      beforeVisible: () =>
        capability.singleUse ? this.#spend(access) : capabilities.requireLive(capability, access.begunMs),
    });
    // A capability that died meanwhile gets no "nothing was there" either.
    if (!outcome.existed) await capabilities.requireLive(capability, access.begunMs);
    else audit.record({ ...auditOf(access), action: "fs.delete", outcome: "ok" });
    return outcome;
  }

  async #spend(access: Access, leaseId?: string): Promise<void> {
    await this.#options.capabilities.spend(access.capability, access.begunMs, leaseId);
    this.#options.audit.record({
      ...auditOf(access),
      action: "capability.spend",
      outcome: "ok",
      detail: { verb: access.verb },
    });
  }
}

function toAccess(
  { capability, path }: Pick<Access, "capability" | "path">,
  verb: Verb,
  begunMs: number,
): Access {
  return { capability, path, verb, begunMs };
}

const CONDITIONS = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

function refusalOf(capability: Capability, verb: Verb, error: AppError): AuditEntry & { tokenId: string } {
  const { tokenId, agentId } = capability;
  return {
    actor: `capability:${tokenId}`,
    action: `fs.${verb.toLowerCase()}`,
    agentId,
    tokenId,
    outcome: error.code,
  };
}

function auditOf({ capability }: Access): { actor: string; agentId: string; tokenId: string } {
  const { tokenId, agentId } = capability;
  return { actor: `capability:${tokenId}`, agentId, tokenId };
}

/** A browser that looks ahead must not burn a link that works once. */
function refusePrefetch({ capability }: Access, header: HeaderReader): void {
  if (!capability.singleUse) return;
  const purpose = `${header("sec-purpose") ?? ""} ${header("purpose") ?? ""} ${header("x-purpose") ?? ""} ${
    header("x-moz") ?? ""
  }`;
  if (/prefetch|prerender|preview/i.test(purpose)) {
    throw new AppError("prefetch", "Cannot serve a single-use link to a prefetch");
  }
}

function chooseRange(file: OpenedFile, header: HeaderReader): ReadOutcome {
  const { version } = file;
  const ifRange = header("if-range");
  const range = ifRange === null || ifRangeHolds(ifRange, version) ? header("range") : null;
  const chosen = parseRange(range, version.sizeBytes);
  if (chosen.kind === "unsatisfiable") {
    throw new AppError(
      "range_not_satisfiable",
      `Cannot serve this range: the file has ${version.sizeBytes} bytes`,
      {
        sizeBytes: version.sizeBytes,
      },
    );
  }
  return chosen.kind === "part" ? { kind: "part", file, start: chosen.start, end: chosen.end } : {
    kind: "whole",
    file,
  };
}
