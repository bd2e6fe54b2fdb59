import { didYouMean } from '../base/nearest.ts';
import { fail, show } from './errors.ts';

/** What an option can be set to. */
export type OptionValue = number | boolean | string;
/** Options by name. */
export type OptionValues = Readonly<Record<string, OptionValue>>;

/** One option of an environment: its type is that of its default. */
export interface OptionSchema<T extends OptionValue = OptionValue> {
  readonly default: T;
  readonly doc: string;
  /** The only values allowed. */
  readonly oneOf?: readonly T[];
  /** Limits of a number, both allowed. */
  readonly min?: number;
  readonly max?: number;
  /** Whole numbers only. */
  readonly integer?: boolean;
}

/** The schema of each option by name. */
export type OptionSchemas<O extends OptionValues = OptionValues> = {
  readonly [K in keyof O]: OptionSchema<O[K]>;
};

/** The given options over the defaults. Unknown names and values outside a schema are errors. */
export function resolveOptions(id: string, schemas: OptionSchemas, given: object): OptionValues {
  const names = Object.keys(schemas);
  const values: Record<string, OptionValue> = {};
  for (const name of names) values[name] = schemas[name].default;
  for (const [name, value] of Object.entries(given)) {
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
    if (schema === undefined) {
      const all = names.length > 0 ? `it has ${names.join(', ')}` : 'it has none';
      fail('option-unknown', `${id} has no option ${show(name)}: ${didYouMean(name, names) || all}`);
    }
    if (value === undefined) continue;
    const problem = problemOf(schema, value);
    if (problem)
      fail('option-invalid', `${id}: option ${name} is ${show(value)}, ${problem} (${schema.doc})`);
    values[name] = value as OptionValue;
  }
  return values;
}

function problemOf(schema: OptionSchema, value: unknown): string | undefined {
  const type = typeof schema.default;
  if (typeof value !== type) return `not a ${type}: the default is ${show(schema.default)}`;
  if (schema.oneOf && !schema.oneOf.includes(value as OptionValue))
    return `not one of ${schema.oneOf.map(show).join(', ')}`;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 'not a finite number';
    if (schema.integer && !Number.isInteger(value)) return 'not a whole number';
    if (schema.min !== undefined && value < schema.min) return `below its least value ${schema.min}`;
    if (schema.max !== undefined && value > schema.max) return `above its largest value ${schema.max}`;
  }
  return undefined;
}

/** Problems of the schemas themselves: a default outside its own limits. */
export function schemaProblem(schemas: OptionSchemas): string | undefined {
  for (const [name, schema] of Object.entries(schemas)) {
    if (
      typeof schema !== 'object' ||
      schema === null ||
      !['number', 'boolean', 'string'].includes(typeof schema.default)
    )
      return `option ${name} needs a default that is a number, a boolean or a string`;
    const problem = problemOf(schema, schema.default);
    if (problem) return `option ${name} has the default ${show(schema.default)}, ${problem}`;
  }
  return undefined;
}
