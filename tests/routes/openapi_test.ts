/** `/openapi.json` is valid OpenAPI 3.1, lists every route, and the server answers as it says. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { ROUTES } from "../../routes/table.ts";
import { expect } from "../helpers/expect.ts";
import { startServer } from "../helpers/server.ts";
import { type JsonSchema, misfits } from "./json_schema.ts";
import { createWorld, type RowRequest, type World } from "./rows.ts";
import { BREAKERS, exchange, VALID } from "./scenarios.ts";

interface Media {
  readonly schema: JsonSchema;
}
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { name: string; in: string }[];
  readonly requestBody?: { content: Record<string, Media> };
  readonly responses: Record<string, { content?: Record<string, Media> }>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, JsonSchema> };
}

function operationOf({ paths }: Document, id: string): Operation {
  const found = Object.values(paths).flatMap((path) => Object.values(path)).find((one) =>
    one.operationId === id
  );
  if (found === undefined) throw new Error(`The document has no ${id}`);
  return found;
}

/** Follows a reference into the components; there is one level of them. */
function toSchema(document: Document, { schema }: Media): JsonSchema {
  const name = typeof schema.$ref === "string" ? schema.$ref.split("/").at(-1) : undefined;
  return name === undefined ? schema : document.components.schemas[name] ?? {};
}

function checkAnswer(
  document: Document,
  operation: Operation,
  answer: { status: number; headers: Headers; text: string },
): void {
  const described = operation.responses[answer.status];
  const what = `${operation.operationId} ${answer.status}`;
  expect(described, `${what} is in the document`).toBeDefined();
  const type = answer.headers.get("content-type")?.split(";")[0];
  if (described?.content === undefined) return;
  const media = described.content[type ?? ""];
  expect(media, `${what} answers ${type}`).toBeDefined();
  if (media === undefined || type !== "application/json") return;
  const schema = toSchema(document, media);
  if (schema.type === "string") return; // the document itself, which its own validator judges
  expect(misfits(schema, JSON.parse(answer.text)), what).toEqual([]);
}

Deno.test("GET /openapi.json is valid OpenAPI 3.1 and has every route once", async () => {
  await using server = await startServer();
  const document = await (await server.fetch("/openapi.json")).json() as Document;
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document) as never);
  expect(errors).toBeUndefined();
  expect([valid, validator.version]).toEqual([true, "3.1"]);
  const ids = Object.values(document.paths).flatMap((path) => Object.values(path)).map((one) =>
    one.operationId
  );
  expect(ids.sort()).toEqual(ROUTES.map((route) => route.id).sort());
  expect(JSON.stringify(document)).not.toContain(server.dataFolder);
});

Deno.test("every example answer and request matches the document", async (t) => {
  await using server = await startServer({ flags: { trustLoopback: "false" } });
  const document = await (await server.fetch("/openapi.json")).json() as Document;
  for (const [index, { id }] of ROUTES.entries()) {
    await t.step(id, async () => {
      const operation = operationOf(document, id);
      const world: World = await createWorld(server, `agent-${index}`, { files: { f: "content" } });
      const request: RowRequest = await VALID[id](world);
      if (request.json !== undefined) {
        const media = operation.requestBody?.content["application/json"];
        expect(media).toBeDefined();
        if (media !== undefined) expect(misfits(toSchema(document, media), request.json)).toEqual([]);
      }
      checkAnswer(document, operation, await exchange(world, request));
      const refuse = BREAKERS.bad_host;
      if (refuse !== undefined) {
        checkAnswer(document, operation, await exchange(world, await refuse(request, world)));
      }
    });
  }
});

Deno.test("misfits() finds what does not fit, and does not pass over what it does not know", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  };
  expect(misfits(schema, { a: 1 })).toEqual([]);
  expect(misfits(schema, { a: 1.5, b: 1 })).toEqual(["$.a is no integer", "$ has b too many"]);
  expect(misfits(schema, {})).toEqual(["$ lacks a"]);
  expect(() => misfits({ oneOf: [] }, 1)).toThrow("oneOf");
});
