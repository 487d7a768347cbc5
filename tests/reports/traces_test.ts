/** Report M2: no secret of a presigned link reaches a trace, a metric or a log. */
import { refuseTracing } from "../../runtime/tracing.ts";
import { fromFileUrl } from "../../base/std.ts";
import { expect } from "../helpers/expect.ts";
import { bearer, startCommand, startServerProcess, until, withFolder } from "./support.ts";

/** A collector of telemetry that keeps all it is sent. */
function startCollector(): { env: Record<string, string>; received(): string } & AsyncDisposable {
  let received = "";
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    received += `${new URL(request.url).pathname} ${await request.text()}`;
    return Response.json({});
  });
  return {
    env: {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
    },
    received: () => received,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("report M2: the server does not start while the runtime traces requests, and says what to set", () =>
  withFolder(async (folder) => {
    await using collector = startCollector();
    const main = fromFileUrl(new URL("../../main.ts", import.meta.url));
    await using program = startCommand(
      [
        Deno.execPath(),
        "run",
        "-A",
        "--no-check",
        main,
        "serve",
        "--port",
        "0",
        "--data",
        folder,
      ],
      collector.env,
    );
    await until(() => !program.running(), 20_000, "the program to end");
    expect(await program.kill()).not.toBe(0);
    expect(program.errors()).toContain("OTEL_DENO_TRACING=false");
  }));

Deno.test("report M2: with tracing off, metrics and the debug log hold neither secrets nor targets", () =>
  withFolder(async (folder) => {
    await using collector = startCollector();
    await using server = await startServerProcess(folder, { logLevel: "debug" }, {
      name: "faulty_disk_server.ts",
      // So frequent an export keeps some versions of the runtime from ending by themselves; this one is killed.
      env: { ...collector.env, OTEL_DENO_TRACING: "false", OTEL_METRIC_EXPORT_INTERVAL: "100" },
    });
    const secret = await server.pair("eve");
    for (
      const [path, headers] of [
        [`/fs/private-name.txt?cap=${secret}`, {}],
        [`/fs/private-name.txt?x=%zz&cap=${secret}`, {}],
        [`/fs/${secret}`, bearer(secret)],
        [`/private-name/${secret}?cap=${secret}`, {}],
        [`/agents?token=${secret}`, bearer(secret)],
      ] as [string, Record<string, string>][]
    ) { // deno-fmt-ignore
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers });
      await response.body?.cancel();
    }
    await until(() => collector.received().includes("/v1/metrics"), 20_000, "metrics");
    await until(() => server.program.errors().split('"request"').length > 5, 10_000, "the log");
    for (const text of [collector.received(), server.program.errors()]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain("private-name");
    }
  }));

Deno.test("refuseTracing() reads the switches as the runtime does (report M2)", () => {
  const traced: Record<string, string>[] = [
    { OTEL_DENO: "true" },
    { OTEL_DENO: "TRUE" },
    { OTEL_DENO_TRACING: "true" },
    { OTEL_DENO: "false", OTEL_DENO_TRACING: "true" },
    { OTEL_DENO: "true", OTEL_DENO_TRACING: "0" },
    { OTEL_DENO: "true", OTEL_SDK_DISABLED: "1" },
    { OTEL_DENO: "true", OTEL_TRACES_EXPORTER: "none" },
  ];
  for (const env of traced) expect(() => refuseTracing(env)).toThrow("traces requests");
  const quiet: Record<string, string>[] = [
    {},
    { OTEL_DENO: "1" },
    { OTEL_DENO: "false" },
    { OTEL_DENO: "true", OTEL_DENO_TRACING: "false" },
    { OTEL_DENO: "true", OTEL_SDK_DISABLED: "true" },
  ];
  for (const env of quiet) refuseTracing(env);
});
