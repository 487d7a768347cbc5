/**
 * `/fs/{path}`: bytes in and out of a workspace, for the bearer of a capability.
 *
 * Reads the request, calls the file service, shapes the answer. Source: System API, "fs verbs"; SYS-FS.
 */
import { create as createDisposition } from "content-disposition";
import { AppError } from "../base/errors.ts";
import { toHttpDate } from "../base/http_date.ts";
import { splitPath } from "../base/paths.ts";
import type { Verb } from "../caps/model.ts";
import type { Access, Files, HeaderReader, ReadOutcome } from "../runtime/files.ts";
import type { FileVersion, MaybePromise, OpenedFile } from "../store/workspace/types.ts";
import type { RequestFacts } from "../runtime/identity.ts";
import { json } from "./respond.ts";
import { readQuery, type Target } from "./target.ts";

/** The path of every file begins so; what follows is read once, raw. */
export const FS_PREFIX = "/fs/";

/** The verb that a method asks for. There is no other method here (405). */
export const FS_VERBS: Readonly<Record<string, Verb>> = {
  GET: "GET",
  HEAD: "STAT",
  PUT: "PUT",
  DELETE: "DELETE",
};

/** What these routes work with. */
export interface FsOptions {
  readonly files: Files;
  refuseUnknown(facts: RequestFacts, message: string): never;
}

/** Returns the token of an `Authorization` header, or "" for any other scheme. */
function readBearer(authorization: string): string {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
}

/** Returns the secret of a request: bearer or `?cap=`. Throws `conflicting_credentials` (SYS-FS-09). */
export function readSecret(authorization: string | null, query: string): string | undefined {
  if (query === "") return authorization === null ? undefined : readBearer(authorization);
  const presented = readQuery(query, "cap");
  if (authorization !== null) presented.push(readBearer(authorization));
  const [first] = presented;
  if (presented.some((secret) => secret !== first)) {
    throw new AppError(
      "conflicting_credentials",
      "Cannot choose between two different secrets in one request",
    );
  }
  return first;
}

/** Answers one request on `/fs/`. Throws AppError. */
export async function serveFile(
  raw: Request,
  target: Target,
  facts: RequestFacts,
  options: FsOptions,
): Promise<Response> {
  const verb = FS_VERBS[raw.method];
  if (verb === undefined) {
    throw new AppError(
      "method_not_allowed",
      `Cannot ${raw.method} here: bytes are moved by GET, HEAD, PUT and DELETE`,
      {
        allow: Object.keys(FS_VERBS),
      },
    );
  }
  const { files } = options;
  const secret = readSecret(raw.headers.get("authorization"), target.query);
  let access: Access;
  try {
    const decided = files.authorise(secret, verb, target.path.slice(FS_PREFIX.length));
    access = decided instanceof Promise ? await decided : decided;
  } catch (error) {
    if (error instanceof AppError && error.code === "unknown_token") {
      options.refuseUnknown(facts, error.message);
    }
    throw error;
  }
  try {
    // No further step in between for the most frequent of them: each costs a turn of the queue.
    if (verb === "GET") return await get(access, files, facts.header);
    return await change(access, files, raw, facts.header);
  } catch (error) {
    files.noteStop(access, error);
    throw error;
  }
}

async function change(access: Access, files: Files, raw: Request, header: HeaderReader): Promise<Response> {
  if (access.verb === "PUT") return await put(access, files, raw);
  if (access.verb === "DELETE") {
    const { existed } = await files.remove(access, header);
    return json({ path: access.path, existed });
  }
  const { notModified, version } = await files.stat(access, header);
  return notModified ? toNotModified(version) : new Response(null, { headers: fileHeaders(access, version) });
}

function get(access: Access, files: Files, header: HeaderReader): MaybePromise<Response> {
  const outcome = files.read(access, header);
  return outcome instanceof Promise ? outcome.then((read) => toFile(access, read)) : toFile(access, outcome);
}

function toFile(access: Access, outcome: ReadOutcome): MaybePromise<Response> {
  if (outcome.kind === "not_modified") return toNotModified(outcome.version);
  const { file } = outcome;
  const { version } = file;
  const headers = fileHeaders(access, version);
  if (outcome.kind === "whole") {
    return file.bytes === undefined
      ? stream(file, 0, version.sizeBytes, { headers })
      : new Response(file.bytes, { headers });
  }
  const { start, end } = outcome;
  const length = end - start + 1;
  const init = {
    status: 206,
    headers: {
      ...headers,
      "content-length": String(length),
      "content-range": `bytes ${start}-${end}/${version.sizeBytes}`,
    },
  };
  return file.bytes === undefined
    ? stream(file, start, length, init)
    : new Response(file.bytes.subarray(start, end + 1), init);
}

async function stream(
  file: OpenedFile,
  start: number,
  length: number,
  init: ResponseInit,
): Promise<Response> {
  return new Response(await file.stream(start, length), init);
}

async function put(access: Access, files: Files, raw: Request): Promise<Response> {
  const declared = raw.headers.get("content-length");
  if (declared !== null && !/^\d{1,15}$/.test(declared)) {
    throw new AppError("invalid_request", "Cannot store this body: its Content-Length is not one number");
  }
  if (raw.headers.has("content-range")) {
    throw new AppError("invalid_request", "Cannot store a part of a file: PUT replaces all of it");
  }
  const { created, bytes, version } = await files.write(
    access,
    (name) => raw.headers.get(name),
    raw.body,
    declared === null ? undefined : Number(declared),
  );
  return json({ path: access.path, bytes, created }, created ? 201 : 200, { etag: version.etag });
}

/** A browser that opens the link must not run, sniff, store or leak what is in it (SYS-FS-06; report 28). */
const SAFE = {
  "content-type": "application/octet-stream",
  "accept-ranges": "bytes",
  "cache-control": "private, no-store, no-transform",
  "content-security-policy": "sandbox; default-src 'none'",
  "referrer-policy": "no-referrer",
  // Some versions of the runtime add this to whatever has a body, so not to HEAD; said here, both agree (report 26).
  "vary": "Accept-Encoding",
  "x-content-type-options": "nosniff",
};

type FileHeaders = Readonly<Record<string, string>>;

/** Headers by version: a store gives the same version object as long as it has the content in memory. */
const knownHeaders = new WeakMap<FileVersion, { readonly path: string; readonly headers: FileHeaders }>();

function fileHeaders({ path }: Access, version: FileVersion): FileHeaders {
  const known = knownHeaders.get(version);
  if (known?.path === path) return known.headers;
  const headers = {
    ...SAFE,
    "content-length": String(version.sizeBytes),
    "content-disposition": toDisposition(splitPath(path).name),
    "etag": version.etag,
    "last-modified": toHttpDate(version.mtimeMs),
  };
  knownHeaders.set(version, { path, headers });
  return headers;
}

function toNotModified(version: FileVersion): Response {
  return new Response(null, {
    status: 304,
    headers: {
      "cache-control": SAFE["cache-control"],
      "etag": version.etag,
      "last-modified": toHttpDate(version.mtimeMs),
    },
  });
}

const PLAIN_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;

function toDisposition(name: string): string {
  return PLAIN_NAME.test(name) ? `attachment; filename="${name}"` : createDisposition(name);
}
