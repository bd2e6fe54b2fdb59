/**
 * Following a format: `json a=3 b=71>` is completed by `{"a":3,"b":71}`, `csv a=3 b=71>` by `a,b;3,71`, and
 * `tags a=3 b=71>` by `<a>3</a><b>71</b>`.
 *
 * **Reward** the sum of `form` (it can be read in the format that was asked for), `names` and `values` (times the share of
 * right ones; what was not asked for counts against it) and `exact` (to the letter); what cannot be read is `malformed`.
 */
import { jsonOf } from '../base/json.ts';
import type { Rng } from '../random/rng.ts';
import { defineTask } from './definition.ts';
import { clearGrade, sumParts, type TaskPrompt } from './text-task.ts';

/** Options of the task `format`. */
export type FormatOptions = {
  readonly fields: number;
  readonly digits: number;
  readonly form: number;
  readonly names: number;
  readonly values: number;
  readonly exact: number;
  readonly malformed: number;
};

type Fields = readonly (readonly [name: string, value: string])[];

interface Format {
  readonly write: (fields: Fields) => string;
  /** Undefined for what is not of this format. */
  readonly read: (text: string) => Fields | undefined;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** Longest completion that is read. */
const MAX_LENGTH = 1000;

const formats: Readonly<Record<string, Format>> = {
  json: {
    write: fields => `{${fields.map(([name, value]) => `"${name}":${value}`).join(',')}}`,
    read(text) {
      let parsed: unknown;
      try {
        parsed = jsonOf(text);
      } catch {
        return undefined;
      }
      if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
      return Object.entries(parsed).map(([name, value]) => [name, String(value)] as const);
    },
  },
  csv: {
    write: fields =>
      `${fields.map(([name]) => name).join(',')};${fields.map(([, value]) => value).join(',')}`,
    read(text) {
      const rows = text.split(';').map(row => row.split(','));
      const [names, values] = rows;
      if (rows.length !== 2 || names.length !== values.length) return undefined;
      return names.map((name, i) => [name, values[i]] as const);
    },
  },
  tags: {
    write: fields => fields.map(([name, value]) => `<${name}>${value}</${name}>`).join(''),
    read(text) {
      const fields = [...text.matchAll(/<([a-z]+)>([^<>]*)<\/\1>/g)];
      if (fields.length === 0 || fields.map(([whole]) => whole).join('') !== text) return undefined;
      return fields.map(([, name, value]) => [name, value] as const);
    },
  },
};
const formatNames = Object.keys(formats);

type Data = { readonly format: string; readonly fields: Fields };

/** The task `format`. */
export const formatDefinition = defineTask<FormatOptions>({
  name: 'format',
  summary: 'Write named numbers as JSON, CSV or tags, whichever is asked for.',
  options: {
    fields: { default: 3, doc: 'fields of the longest prompt', min: 1, max: 8, integer: true },
    digits: { default: 2, doc: 'digits of the largest number', min: 1, max: 6, integer: true },
    form: { default: 0.2, doc: 'reward for what can be read in the format', min: -10, max: 10 },
    names: { default: 0.2, doc: 'reward times the share of right names', min: -10, max: 10 },
    values: { default: 0.4, doc: 'reward times the share of right values', min: -10, max: 10 },
    exact: { default: 0.7, doc: 'reward for the exact text', min: -10, max: 10 },
    malformed: { default: -0.3, doc: 'reward for what cannot be read', min: -10, max: 10 },
  },
  make: options => ({
    name: 'format',
    characters: `${LETTERS}0123456789 =>{}":,;</`,
    pieces: [...formatNames.map(name => `${name} `), '</', '":'],
    rewardParts: ['form', 'names', 'values', 'exact', 'malformed'],
    metricNames: ['exact', ...formatNames.map(name => `exact_${name}`)],
    stop: ['\n'],
    maxPromptTokens: 2 + options.fields * (options.digits + 3),
    maxNewTokens: 4 + options.fields * (options.digits + 6),
    prompt(rng) {
      const format = formatNames[rng.integer(formatNames.length)];
      const fields = drawFields(rng, options);
      const asked = fields.map(([name, value]) => `${name}=${value}`).join(' ');
      return { text: `${format} ${asked}>`, data: { format, fields } };
    },
    grade(prompt, completion, out) {
      clearGrade(out);
      const { format, fields } = dataOf(prompt);
      const text = completion.slice(0, MAX_LENGTH).trim();
      const written = formats[format].read(text);
      const exact = text === formats[format].write(fields) ? 1 : 0;
      out.metrics[0] = exact;
      out.metrics[1 + formatNames.indexOf(format)] = exact;
      if (written === undefined) {
        out.parts[4] = options.malformed;
      } else {
        const values = new Map(written);
        const most = Math.max(fields.length, written.length);
        const names = fields.filter(([name]) => values.has(name)).length;
        const right = fields.filter(([name, value]) => values.get(name) === value).length;
        out.parsed = true;
        out.parts[0] = options.form;
        out.parts[1] = (options.names * names) / most;
        out.parts[2] = (options.values * right) / most;
        out.parts[3] = options.exact * exact;
      }
      sumParts(out);
    },
    demonstration(prompt) {
      const { format, fields } = dataOf(prompt);
      return formats[format].write(fields);
    },
  }),
});

/** Different letters, in any order. */
function drawFields(rng: Rng, options: FormatOptions): Fields {
  const count = 1 + rng.integer(options.fields);
  const letters = rng.permutation(LETTERS.length);
  return Array.from({ length: count }, (_, i) => {
    const limit = 10 ** (1 + rng.integer(options.digits));
    return [LETTERS[letters[i]], String(rng.integer(limit))] as const;
  });
}

const dataOf = (prompt: TaskPrompt): Data => prompt.data as unknown as Data;
