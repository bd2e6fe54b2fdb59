/** Python's printed dictionaries. Only literals are understood; nothing is ever evaluated. */
import { type Cell, noNumber, readNumber } from './numbers.ts';

const deepest = 6;
const mostItems = 5000;
const longest = 2 ** 18;

/** The dictionary that begins at `{`, as an object; undefined if it is not whole or not made of literals. */
export function parsePythonDict(text: string, start: number): unknown {
  const end = Math.min(text.length, start + longest);
  let at = start;
  let items = 0;
  const nothing = Symbol('nothing');

  function space(): void {
    while (at < end && (text[at] === ' ' || text[at] === '\t')) at++;
  }

  function string(): string | typeof nothing {
    const quote = text[at];
    const parts: string[] = [];
    let from = ++at;
    for (; at < end; at++) {
      const c = text[at];
      if (c === '\\') {
        parts.push(text.slice(from, at));
        from = ++at;
      } else if (c === quote) {
        parts.push(text.slice(from, at++));
        return parts.join('');
      }
    }
    return nothing;
  }

  /** A number, a name or a call such as `np.float64(0.5)`, `tensor(1.0, device='cuda:0')`. */
  function word(): unknown {
    const from = at;
    let brackets = 0;
    for (; at < end; at++) {
      const c = text[at];
      if (c === '(' || c === '[') brackets++;
      else if (brackets > 0 && (c === ')' || c === ']')) brackets--;
      else if (brackets === 0 && (c === ',' || c === '}' || c === ']' || c === ')')) break;
    }
    if (at === from || at >= end) return nothing;
    const cell: Cell = readNumber(text.slice(from, at));
    if (typeof cell === 'number') return cell;
    return cell === noNumber ? text.slice(from, at).trim() : null;
  }

  function value(depth: number): unknown {
    space();
    const c = text[at];
    if (c === "'" || c === '"') return string();
    if (depth > deepest) return nothing;
    if (c === '{') return dict(depth);
    if (c === '[' || c === '(') return list(depth, c === '[' ? ']' : ')');
    return word();
  }

  function list(depth: number, close: string): unknown {
    const out: unknown[] = [];
    at++;
    for (;;) {
      space();
      if (text[at] === close) {
        at++;
        return out;
      }
      if (++items > mostItems) return nothing;
      const one = value(depth + 1);
      if (one === nothing) return nothing;
      out.push(one);
      space();
      if (text[at] === ',') at++;
      else if (text[at] !== close) return nothing;
    }
  }

  function dict(depth: number): unknown {
    // Without a prototype, so that a key such as __proto__ is only a key.
    const out: Record<string, unknown> = Object.create(null);
    at++;
    for (;;) {
      space();
      if (text[at] === '}') {
        at++;
        return out;
      }
      if (++items > mostItems || (text[at] !== "'" && text[at] !== '"')) return nothing;
      const key = string();
      if (key === nothing) return nothing;
      space();
      if (text[at++] !== ':') return nothing;
      const one = value(depth + 1);
      if (one === nothing) return nothing;
      out[key as string] = one;
      space();
      if (text[at] === ',') at++;
      else if (text[at] !== '}') return nothing;
    }
  }

  const result = dict(0);
  return result === nothing ? undefined : result;
}
