/**
 * Puts the services of one server together, and takes them apart again.
 *
 * Everything that routes need is made here, once, from the configuration; nothing is found by import.
 */
import { isAgentId } from "../base/agent_id.ts";
import { systemClock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { OperatorError } from "../base/operator_error.ts";
import type { Log } from "../base/log.ts";
import { VERSION } from "../base/version.ts";
import { CapabilityService } from "../caps/service.ts";
import type { DataFolder } from "../store/data_folder/open.ts";
import type { AgentRow } from "../store/database/agent_rows.ts";
import { type Database, DatabaseTooNewError, openDatabase } from "../store/database/open.ts";
import { createLocalStore } from "../store/workspace/local_store.ts";
import type { WorkspaceRef, WorkspaceStore } from "../store/workspace/types.ts";
import { ensureAdminToken, readAdminTokenHash } from "./admin_token.ts";
import { Agents } from "./agents.ts";
import { Audit } from "./audit.ts";
import { toBanner } from "./banner.ts";
import type { ServerConfig } from "./config.ts";
import { Events, KEEP_ACKED_MS } from "./events.ts";
import { Files } from "./files.ts";
import { Guard } from "./guard.ts";
import { Homes } from "./homes.ts";
import { Identity } from "./identity.ts";
import { requireSameKey } from "./key_fingerprint.ts";
import { type Listening, toLocalUrl } from "./server.ts";
import { WebhookTokens } from "./webhooks.ts";

const HOUSEKEEPING_MS = 3_600_000;

/** The services of one running server. */
export interface Context {
  readonly config: ServerConfig;
  readonly log: Log;
  readonly store: WorkspaceStore;
  readonly identity: Identity;
  readonly guard: Guard;
  readonly capabilities: CapabilityService;
  readonly agents: Agents;
  readonly events: Events;
  readonly audit: Audit;
  readonly files: Files;
  readonly database: Database;
  /** What the admin and channel planes ask who comes in. */
  readonly access: { guard: Guard; identity: Identity; findAgent(agentId: string): Promise<AgentRow> };
  /** Whether the server is stopping. */
  readonly draining: boolean;
  /** Tells where the server listens; needed before the first request. */
  setListening(listening: Listening): void;
  serverPort(): number;
  /** The base of URLs that are given out: the public one, else where it listens. Without a slash at its end. */
  publicBase(): string;
  /** Begins to stop: health turns to 503 and event streams end. */
  beginDrain(): void;
  /** The lines to greet the operator with. */
  banner(url: string): string[];
  /** Writes what is left to write, and closes everything. */
  close(): Promise<void>;
}

/**
 * Opens the records and the store and makes the services.
 *
 * Throws OperatorError for what the operator must mend, AppError `unavailable` when the database cannot be had.
 */
export async function createContext(config: ServerConfig, folder: DataFolder, log: Log): Promise<Context> {
  const clock = systemClock;
  await requireFolders(config.homes);
  const database = await openRecords(config, folder, log);
  try {
    await requireSameKey(folder.secretKey, database.settings);
    const newAdminToken = await ensureAdminToken(folder, database.settings);
    const store = await createLocalStore({
      makersFolder: folder.makers,
      locksFolder: folder.locks,
      marks: database.marks,
      shared: config.shared,
      containment: config.containment,
      diskReserveBytes: config.diskReserveBytes,
      idleTimeoutMs: config.idleTimeoutMs,
      log,
      clock,
    });
    return await assemble({ config, folder, log, database, store, newAdminToken });
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function requireFolders(homes: readonly string[]): Promise<void> {
  for (const home of homes) {
    try {
      if ((await Deno.stat(home)).isDirectory) continue;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory)) throw error;
    }
    throw new OperatorError(
      "failed",
      `Cannot use --homes "${home}": it is not a folder`,
      "Make it, or leave it out",
    );
  }
}

/** Opens the records; what is wrong with them at the start is the operator's to mend, with the place named. */
async function openRecords(config: ServerConfig, folder: DataFolder, log: Log): Promise<Database> {
  const url = config.dbUrl ?? folder.databaseFile;
  try {
    return await openDatabase({
      url,
      authToken: config.dbToken,
      shared: config.shared,
      log,
      clock: systemClock,
    });
  } catch (error) {
    if (error instanceof DatabaseTooNewError) {
      throw new OperatorError(
        "failed",
        error.message,
        "Start the newer version of String that wrote it",
        error,
      );
    }
    if (error instanceof OperatorError || error instanceof TypeError) throw error;
    const advice = config.dbUrl === undefined
      ? "See that it is a database of String, readable and writable, with free disk space; restore a backup if it is damaged"
      : "See that the database server runs at this address and takes the token in STRING_DB_TOKEN";
    const why = error instanceof AppError ? error.message : "it cannot be opened";
    throw new OperatorError("failed", `Cannot open the records "${url}": ${why}`, advice, error);
  }
}

interface Parts {
  readonly config: ServerConfig;
  readonly folder: DataFolder;
  readonly log: Log;
  readonly database: Database;
  readonly store: WorkspaceStore;
  readonly newAdminToken: boolean;
}

async function assemble(parts: Parts): Promise<Context> {
  const { config, folder, log, database, store, newAdminToken } = parts;
  const clock = systemClock;
  const audit = new Audit({ rows: database.audit, clock, log });
  const capabilities = new CapabilityService({
    rows: database.capabilities,
    engine: database.engine,
    clock,
  });
  const events = new Events({
    rows: database.events,
    clock,
    shared: config.shared,
    isAlive: async (agent, byKey) => {
      const row = await database.agents.find(agent.agent_id);
      return row?.incarnation === agent.incarnation && (!byKey || row.key_hash === agent.key_hash);
    },
  });
  const agents = new Agents({
    rows: database.agents,
    capabilities,
    store,
    homes: new Homes(folder.path, config.homes),
    webhooks: new WebhookTokens(folder.secretKey),
    clock,
    onRemoved: (incarnation) => events.closeStreams(incarnation),
    onKeyReplaced: (incarnation) => events.recheckStreams(incarnation),
  });
  const identity = await Identity.create({
    trustLoopback: config.trustLoopback,
    exposed: config.publicUrl !== undefined,
    trustedHops: config.trustedHops,
    clock,
    adminTokenHash: () => readAdminTokenHash(database.settings),
    findAgentByKeyHash: (hash) => database.agents.findByKeyHash(hash),
  });
  const guard = new Guard({
    allowedHosts: config.allowedHosts,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
  });
  const files = new Files({ capabilities, agents, store, audit, clock, maxBytes: config.maxBytes });

  const sweep = async () => {
    const swept = await store.sweep(await listWorkspaces(folder.workspaces, agents));
    if (swept > 0) log.info("unfinished uploads of a server that is gone removed", { count: swept });
  };
  await sweep();
  const stopHousekeeping = startHousekeeping({ capabilities, database, audit, log }, sweep);
  let listening: Listening = {
    url: toLocalUrl(config.host, config.port),
    hostname: config.host,
    port: config.port,
  };
  let draining = false;

  return {
    config,
    log,
    store,
    identity,
    guard,
    capabilities,
    agents,
    events,
    audit,
    files,
    database,
    access: { guard, identity, findAgent: (agentId) => agents.get(agentId) },
    get draining() {
      return draining;
    },
    setListening: (actual) => listening = actual,
    serverPort: () => listening.port,
    publicBase: () => config.publicUrl ?? listening.url,
    beginDrain() {
      draining = true;
      events.drain();
    },
    banner: (url) =>
      toBanner({
        version: VERSION,
        url,
        host: config.host,
        ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
        dataFolder: folder.path,
        records: config.dbUrl ?? folder.databaseFile,
        shared: config.shared,
        containment: store.abilities.containment,
        ambientTrust: identity.ambientTrust,
        newAdminToken,
      }),
    async close() {
      stopHousekeeping();
      await audit.close();
      store.close();
      await database.close();
    },
  };
}

/** All workspaces there are, also those whose agent is gone. */
async function listWorkspaces(folder: string, agents: Agents): Promise<WorkspaceRef[]> {
  const workspaces = (await agents.list()).map((agent) => agents.workspaceOf(agent));
  const known = new Set(workspaces.map(({ home }) => home));
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory || !isAgentId(name)) continue;
    const workspace = agents.usualWorkspaceOf(name);
    if (!known.has(workspace.home)) workspaces.push(workspace);
  }
  return workspaces;
}

/** Drops what has been kept long enough, at start and then every hour. Returns what ends it. */
function startHousekeeping(
  services: Pick<Context, "capabilities" | "database" | "audit" | "log">,
  sweep: () => Promise<void>,
): () => void {
  const { capabilities, database, audit, log } = services;
  let stopped = false;
  const report = (error: unknown) => {
    // Nothing is lost by tidying an hour later, or at the next start.
    if (stopped) return;
    log.warn("housekeeping failed", { reason: error instanceof Error ? error.message : String(error) });
  };
  const tidy = async () => {
    await capabilities.purge();
    await database.events.purgeAcked(systemClock.now() - KEEP_ACKED_MS);
    await audit.prune();
  };
  tidy().catch(report);
  const timer = setInterval(() => tidy().then(sweep).catch(report), HOUSEKEEPING_MS);
  Deno.unrefTimer(timer);
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}
