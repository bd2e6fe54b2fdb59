/** JSON as trainers write it: with NaN and infinities bare, nested, sometimes cut. */
import { jsonOf } from '../../base/json.ts';
import type { RunBuilder, Setting } from './run-builder.ts';

const deepest = 24;
/** Leaves of one row. */
const mostLeaves = 50_000;

export type JsonObject = { readonly [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value, or undefined if the text is not JSON. Bare NaN, Infinity, nan and inf become texts of that spelling. */
export function parseJson(text: string): unknown {
  try {
    return jsonOf(text);
  } catch {
    if (!/nan|inf|none/i.test(text)) return undefined;
  }
  try {
    return jsonOf(quoteBareWords(text));
  } catch {
    return undefined;
  }
}

const bareWord = /-?(?:NaN|Infinity|nan|inf|None)\b/y;

/** By hand: a pattern that also has to match strings can take quadratic time on a damaged line. */
function quoteBareWords(text: string): string {
  const parts: string[] = [];
  let from = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 92) i++;
      else if (c === 34) inString = false;
      continue;
    }
    if (c === 34) {
      inString = true;
    } else if (c === 78 || c === 73 || c === 110 || c === 105 || c === 45) {
      bareWord.lastIndex = i;
      const word = bareWord.exec(text)?.[0];
      if (word === undefined) continue;
      parts.push(text.slice(from, i), word === 'None' ? 'null' : `"${word}"`);
      i += word.length - 1;
      from = i + 1;
    }
  }
  parts.push(text.slice(from));
  return parts.join('');
}

/** Calls `leaf` for everything in nested objects that is not an object; names are joined with `/`. */
export function forEachLeaf(
  object: JsonObject,
  leaf: (name: string, value: unknown) => void,
  prefix = '',
): void {
  let left = mostLeaves;
  const walk = (from: JsonObject, before: string, depth: number): void => {
    for (const key in from) {
      if (left <= 0) return;
      const value = from[key];
      const name = before === '' ? key : `${before}/${key}`;
      if (isObject(value)) {
        // W&B's histograms, tables and pictures are objects that name their type.
        if (depth < deepest && value._type === undefined) walk(value, name, depth + 1);
      } else {
        left--;
        leaf(name, value);
      }
    }
  };
  walk(object, prefix, 0);
}

/** Adds nested settings to a run, flat. Lists are kept as JSON. */
export function addSettings(run: RunBuilder, object: JsonObject, prefix = ''): void {
  forEachLeaf(
    object,
    (name, value) => {
      run.setting(name, asSetting(value));
    },
    prefix,
  );
}

export function asSetting(value: unknown): Setting {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string') return value;
  try {
    return JSON.stringify(value).slice(0, 2000);
  } catch {
    return null;
  }
}
