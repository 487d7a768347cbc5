/**
 * The one door to the Deno standard library.
 *
 * The same code comes from npm (no types, hence the `.d.ts` beside) or from JSR, by what `deno.json` maps
 * `@std/…` to; the rest of the project imports it from here and does not know which.
 */

// @ts-types="./std/path.d.ts"
export { basename, dirname, extname, fromFileUrl, isAbsolute, join, relative, resolve } from "@std/path";
// @ts-types="./std/streams.d.ts"
export { LimitedBytesTransformStream, TextLineStream, toBytes, toText } from "@std/streams";
