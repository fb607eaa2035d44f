// Which types does the operator's API have? Writes src/schema.ts out of deploy/page/openapi.json, which is made of the
// operator's own types: a field that is renamed there breaks the build here.
//
//   node scripts/types.mjs [--check]
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const DOCUMENT = fileURLToPath(new URL("../../deploy/page/openapi.json", import.meta.url));
const TYPES = fileURLToPath(new URL("../src/schema.ts", import.meta.url));

const HEAD = `// What does the API send and take? Generated out of deploy/page/openapi.json by scripts/types.mjs.
/* biome-ignore-all lint: generated */
/* biome-ignore-all format: generated */
`;

/** The TypeScript for a whole document. */
export function typesOf(document) {
  const schemas = Object.entries(document.components?.schemas ?? {});
  const named = schemas.map(([name, schema]) => `export type ${nameOf(name)} = ${typeOf(schema)};\n`);
  const answers = [];
  const questions = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const key = JSON.stringify(`${method.toUpperCase()} ${path.replace(/^\/api\/v1/, "")}`);
      const answer = Object.values(operation.responses?.["200"]?.content ?? {})[0]?.schema;
      if (answer !== undefined) answers.push(`  ${key}: ${typeOf(answer)};\n`);
      const question = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
      if (question !== undefined) questions.push(`  ${key}: ${typeOf(question)};\n`);
    }
  }
  const maps = `export interface Answers {\n${answers.join("")}}\n\nexport interface Questions {\n${questions.join("")}}\n`;
  return `${HEAD}\n${named.join("\n")}\n${maps}`;
}

const nameOf = (name) => name.replace(/\W/g, "_");

const SIMPLE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

export function typeOf(schema) {
  if (schema === true || Object.keys(schema).length === 0) return "unknown";
  if (schema === false) return "never";
  const parts = [];
  if (schema.$ref) parts.push(nameOf(schema.$ref.split("/").at(-1)));
  if ("const" in schema) parts.push(JSON.stringify(schema.const));
  else if (schema.enum) parts.push(union(schema.enum.map((value) => JSON.stringify(value))));
  for (const choice of [schema.oneOf, schema.anyOf]) if (choice) parts.push(union(choice.map(typeOf)));
  for (const one of schema.allOf ?? []) parts.push(typeOf(one));
  const isSaid = parts.length > 0 && !schema.properties;
  if (!isSaid && schema.type !== undefined) {
    parts.push(union([schema.type].flat().map((type) => shapeOf(type, schema))));
  } else if (schema.properties) parts.push(shapeOf("object", schema));
  return parts.length === 0 ? "unknown" : parts.join(" & ");
}

function union(types) {
  const different = [...new Set(types)];
  return different.length === 1 ? different[0] : `(${different.join(" | ")})`;
}

function shapeOf(type, schema) {
  if (type in SIMPLE) return SIMPLE[type];
  if (type === "array") {
    if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
    return `(${typeOf(schema.items ?? true)})[]`;
  }
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const type = typeOf(field);
    // What may be null is never left out: the operator says null.
    const isThere = required.has(name) || type.includes("| null)");
    return `${JSON.stringify(name)}${isThere ? "" : "?"}: ${type}`;
  });
  const others = schema.additionalProperties;
  if (fields.length > 0) return `{ ${fields.join("; ")} }`;
  return others === false ? "Record<string, never>" : `Record<string, ${typeOf(others ?? true)}>`;
}

async function main() {
  const wanted = typesOf(JSON.parse(await readFile(DOCUMENT, "utf8")));
  if (!process.argv.includes("--check")) return writeFile(TYPES, wanted);
  const present = await readFile(TYPES, "utf8").catch(() => "");
  if (present === wanted) return;
  console.error("web/src/schema.ts is not what deploy/page/openapi.json says: run npm run types in web/");
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
