/** JSON that reads back bit for bit, or is refused when it is written; and JSON from outside, bounded before it is parsed. */
import { fail, KeelError, RunError, show } from './errors.ts';

const maxDepth = 64;

/**
 * A value as JSON that reads back as itself. What JSON would silently change is an error that names the place: NaN and
 * infinities (null), typed arrays (objects), undefined in a list, class instances. -0 is kept.
 */
export function encodeJson(value: unknown, what: string): string {
  return `${encode(value, what, '', 0)}\n`;
}

function encode(value: unknown, path: string, indent: string, depth: number): string {
  if (depth > maxDepth) fail(`${path} is nested more than ${maxDepth} deep: flatten it`);
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) fail(`${path} is ${value}, which JSON cannot hold: use null or text`);
      return Object.is(value, -0) ? '-0' : String(value);
    case 'string':
      // JSON.stringify keeps a lone surrogate as an escape, so that too reads back as it was.
      return JSON.stringify(value);
    case 'boolean':
      return String(value);
    case 'object': {
      if (value === null) return 'null';
      const inner = `${indent}  `;
      if (Array.isArray(value)) {
        const items = Array.from(value, (item, i) => encode(item, `${path}[${i}]`, inner, depth + 1));
        // Lists of numbers, such as a normaliser's means, stay on one line.
        const flat = value.every(item => typeof item === 'number');
        if (flat || items.length === 0) return `[${items.join(', ')}]`;
        return `[\n${items.map(item => inner + item).join(',\n')}\n${indent}]`;
      }
      const prototype = Object.getPrototypeOf(value);
      if (prototype !== Object.prototype && prototype !== null) {
        fail(`${path} is a ${prototype?.constructor?.name}, which JSON cannot hold: use Array.from or text`);
      }
      const members = Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(
          ([key, member]) =>
            `${inner}${JSON.stringify(key)}: ${encode(member, `${path}.${key}`, inner, depth + 1)}`,
        );
      return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n${indent}}`;
    }
    default:
      return fail(`${path} is ${show(value)}, which JSON cannot hold: use null or text`);
  }
}

/**
 * The value of a JSON text from outside. What is nested deeper than anything we or a trainer write is refused before it is
 * parsed: V8 parses any depth, and makes fifty bytes of each bracket, but what walks over the value runs out of stack.
 */
export function jsonOf(text: string): unknown {
  if (isDeep(text)) throw new KeelError(`nested more than ${maxDepth} deep: flatten it`);
  return JSON.parse(text);
}

function isDeep(text: string): boolean {
  // Most texts have fewer brackets than that in all, which is told at the speed of memory.
  if (countUpTo(maxDepth, text, '{') + countUpTo(maxDepth, text, '[') <= maxDepth) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 34: // "
        for (i++; i < text.length && text.charCodeAt(i) !== 34; i++) if (text.charCodeAt(i) === 92) i++;
        break;
      case 91: // [
      case 123: // {
        if (++depth > maxDepth) return true;
        break;
      case 93: // ]
      case 125: // }
        depth--;
        break;
    }
  }
  return false;
}

/** How often a character is in a text, or one more than `most`. */
function countUpTo(most: number, text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0 && count <= most; at = text.indexOf(character, at + 1))
    count++;
  return count;
}

/** A mark at the beginning is no JSON, and stays to be refused. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Parses JSON; damage is an error that names the source. */
export function parseJson(bytes: Uint8Array, source: string): unknown {
  try {
    return jsonOf(utf8.decode(bytes));
  } catch (cause) {
    const why = bytes.length === 0 ? 'it is empty' : (cause as Error).message.replace(/\s+/g, ' ');
    throw new RunError(`${source} is damaged: ${why.slice(0, 120)}`, { code: 'invalid', cause });
  }
}

/** JSON in which numbers that are not finite are written as in the log: "NaN", "Infinity". */
export function toJson(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_, v: unknown) => (typeof v === 'number' && !Number.isFinite(v) ? String(v) : v),
    indent,
  );
}
