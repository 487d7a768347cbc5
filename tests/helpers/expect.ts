// @ts-types="../../base/std/expect.d.ts"
export { expect } from "@std/expect";
