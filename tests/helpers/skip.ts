/** Tests that need something a machine may lack: skipped with a printed reason, never silently. */

/** Registers a test when `condition` holds; else prints `SKIPPED name: reason` and registers it as ignored. */
export function testIf(
  condition: boolean,
  reason: string,
  name: string,
  fn: (t: Deno.TestContext) => void | Promise<void>,
): void {
  if (!condition) Deno.stderr.writeSync(new TextEncoder().encode(`SKIPPED ${name}: ${reason}\n`));
  Deno.test({ name, ignore: !condition, fn });
}
