/**
 * Holds a value against the part of JSON Schema that the OpenAPI document uses.
 *
 * A keyword that is not known here is a mistake in the caller's hands, not a value that fits: it throws.
 */

/** A schema of the document. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const ANNOTATIONS = new Set(["description", "title", "default", "examples", "format"]);

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

function isOfType(value: unknown, type: string): boolean {
  return type === "integer" ? Number.isInteger(value) : typeOf(value) === type;
}

/** Returns what is wrong with `value`, each with its place; empty when it fits. */
export function misfits(schema: JsonSchema, value: unknown, at = "$"): string[] {
  const wrong: string[] = [];
  const say = (what: string) => void wrong.push(`${at} ${what}`);
  const fields = typeOf(value) === "object" ? value as Record<string, unknown> : {};
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  for (const [keyword, wanted] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword)) continue;
    switch (keyword) {
      case "type":
        if (![wanted].flat().some((type) => isOfType(value, String(type)))) say(`is no ${wanted}`);
        break;
      case "const":
        if (value !== wanted) say(`is not ${wanted}`);
        break;
      case "enum":
        if (!(wanted as unknown[]).includes(value)) say(`is none of ${wanted}`);
        break;
      case "pattern":
        if (typeof value === "string" && !new RegExp(String(wanted), "u").test(value)) {
          say(`is not ${wanted}`);
        }
        break;
      case "minimum":
        if (typeof value === "number" && value < Number(wanted)) say(`is below ${wanted}`);
        break;
      case "maximum":
        if (typeof value === "number" && value > Number(wanted)) say(`is above ${wanted}`);
        break;
      case "minItems":
        if (Array.isArray(value) && value.length < Number(wanted)) say("has too few items");
        break;
      case "maxItems":
        if (Array.isArray(value) && value.length > Number(wanted)) say("has too many items");
        break;
      case "items":
        if (!Array.isArray(value)) break;
        value.forEach((item, n) => wrong.push(...misfits(wanted as JsonSchema, item, `${at}[${n}]`)));
        break;
      case "required":
        for (const name of wanted as string[]) if (!(name in fields)) say(`lacks ${name}`);
        break;
      case "properties":
        for (const [name, inner] of Object.entries(properties)) {
          if (name in fields) wrong.push(...misfits(inner, fields[name], `${at}.${name}`));
        }
        break;
      case "additionalProperties":
        for (const name of Object.keys(fields).filter((each) => !(each in properties))) {
          if (wanted === false) say(`has ${name} too many`);
          else if (typeof wanted === "object") {
            wrong.push(...misfits(wanted as JsonSchema, fields[name], `${at}.${name}`));
          }
        }
        break;
      case "propertyNames":
        for (const name of Object.keys(fields)) {
          wrong.push(...misfits(wanted as JsonSchema, name, `${at} (${name})`));
        }
        break;
      case "anyOf":
        if ((wanted as JsonSchema[]).every((each) => misfits(each, value, at).length > 0)) say("fits none");
        break;
      default:
        throw new TypeError(`This check does not know the keyword ${keyword}`);
    }
  }
  return wrong;
}
