// The part of @std/path that String uses; the package on npm carries no types.

/** Joins path segments with the separator of this platform and normalises the result. */
export function join(...paths: string[]): string;
/** Resolves path segments to one absolute path, against the current folder where it must. */
export function resolve(...paths: string[]): string;
/** Returns the folder part of a path. */
export function dirname(path: string): string;
/** Returns the last segment of a path, without `suffix`. */
export function basename(path: string, suffix?: string): string;
/** Returns the extension of a path with its dot, or "". */
export function extname(path: string): string;
/** Returns whether a path is absolute. */
export function isAbsolute(path: string): boolean;
/** Returns the path of a file URL. */
export function fromFileUrl(url: string | URL): string;
/** Returns the path from one folder to another. */
export function relative(from: string, to: string): string;
