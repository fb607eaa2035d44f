import assert from "node:assert/strict";
import { test } from "node:test";

const { typeOf, typesOf } = (await import(new URL("../../../scripts/types.mjs", import.meta.url).href)) as {
  typeOf: (schema: unknown) => string;
  typesOf: (document: unknown) => string;
};

test("every kind of schema that the operator's types lead to has a type", () => {
  const cases: [unknown, string][] = [
    [{ type: "string" }, "string"],
    [{ type: ["string", "null"] }, "(string | null)"],
    [{ anyOf: [{ $ref: "#/components/schemas/Waiting" }, { type: "null" }] }, "(Waiting | null)"],
    [{ type: "string", enum: ["well", "down"] }, '("well" | "down")'],
    [{ type: "array", items: { type: "integer", format: "uint" } }, "(number)[]"],
    [
      { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], minItems: 2 },
      "[string, number]",
    ],
    [{ type: "object", additionalProperties: { type: "integer" } }, "Record<string, number>"],
    [
      { type: "object", properties: { a: { type: "string" }, b: true }, required: ["a"] },
      '{ "a": string; "b"?: unknown }',
    ],
    [
      {
        oneOf: [
          { type: "object", properties: { is: { const: "due" } }, required: ["is"] },
          { type: "object", properties: { is: { const: "planned" } }, required: ["is"] },
        ],
      },
      '({ "is": "due" } | { "is": "planned" })',
    ],
    [true, "unknown"],
  ];
  for (const [schema, type] of cases) assert.equal(typeOf(schema), type);
});

test("a document's answers and questions are found by method and path", () => {
  const content = (name: string) => ({
    content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } },
  });
  const types = typesOf({
    components: {
      schemas: { Me: { type: "object", properties: { user: { type: "string" } }, required: ["user"] } },
    },
    paths: {
      "/api/v1/me": { get: { responses: { "200": content("Me") } } },
      "/api/v1/what-if": {
        post: { requestBody: content("WhatIf"), responses: { "200": content("WhatIfAnswer") } },
      },
    },
  });
  assert.match(types, /export type Me = \{ "user": string \};/);
  assert.match(types, /interface Answers \{\n {2}"GET \/me": Me;\n {2}"POST \/what-if": WhatIfAnswer;\n\}/);
  assert.match(types, /interface Questions \{\n {2}"POST \/what-if": WhatIf;\n\}/);
});
