/**
 * YAML from outside, bounded before the parser sees it. The parser takes time that grows faster than any power of how
 * deep collections lie in each other: 400 opening braces take it half a minute. Its lexer takes one pass whatever it
 * is given, so that depth is counted on tokens, where braces in texts and comments are none. It also compares each key of
 * a map with all others: 20,000 keys take it half a minute. Here a set does that.
 */
import { CST, isScalar, Lexer, parseDocument, visit } from 'yaml';
import { KeelError } from './errors.ts';

/** Settings lie a few deep. */
const MAX_DEPTH = 32;
const MAX_ALIASES = 100;
/** The parser is slow, and settings are small. */
const MAX_CHARACTERS = 2 ** 18;

/** A text that is no YAML, or none that settings are written in. */
export class YamlError extends KeelError {
  override name = 'YamlError';
  /** Where, from 1; undefined where it is the whole. */
  readonly at: { readonly line: number; readonly column: number } | undefined;

  constructor(why: string, at?: YamlError['at'], cause?: unknown) {
    super(why, { code: 'yaml-invalid', cause });
    this.at = at;
  }
}

/** The value of a YAML text; what is no YAML, or nested too deep, is an error that says where. */
export function parseYaml(text: string): unknown {
  if (text.length > MAX_CHARACTERS)
    throw new YamlError(`has ${text.length} characters, at most ${MAX_CHARACTERS}: is it the right file?`);
  const at = tooDeepAt(text);
  if (at !== undefined)
    throw new YamlError(
      `nested more than ${MAX_DEPTH} deep, as no settings are: flatten it`,
      placeOf(text, at),
    );
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'silent', uniqueKeys: false });
  const [problem] = document.errors;
  if (problem !== undefined)
    throw new YamlError(problem.message.split('\n')[0], placeOf(text, problem.pos[0]));
  const twice = secondOfTwo(document);
  if (twice !== undefined) throw new YamlError('Map keys must be unique', placeOf(text, twice));
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (cause) {
    throw new YamlError((cause as Error).message.split('\n')[0], undefined, cause);
  }
}

/** Where a key stands that its map has already. */
function secondOfTwo(document: ReturnType<typeof parseDocument>): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        // Maps are merged as often as one likes.
        if (seen.has(key.value) && key.value !== '<<') {
          found = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

function placeOf(text: string, offset: number): NonNullable<YamlError['at']> {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

/**
 * Where a text first lies deeper than the limit; undefined if it never does. An upper bound: collections in brackets, the
 * columns that block collections began at, and indicators (`- ? - :`) in one line each count.
 */
function tooDeepAt(text: string): number | undefined {
  let [offset, flow, inLine, atLineStart, indent] = [0, 0, 0, true, 0];
  const columns: number[] = [];
  for (const token of new Lexer().lex(text)) {
    const type = CST.tokenType(token);
    if (type === 'newline') [inLine, atLineStart, indent] = [0, true, 0];
    else if (type === 'space' && atLineStart) indent = token.length;
    else if (type !== null && type !== 'comment' && type !== 'byte-order-mark') {
      if (atLineStart && flow === 0) {
        while (columns.length > 0 && columns.at(-1)! >= indent) columns.pop();
        columns.push(indent);
      }
      atLineStart = false;
    }
    if (type === 'flow-map-start' || type === 'flow-seq-start') flow++;
    else if (type === 'flow-map-end' || type === 'flow-seq-end') flow = Math.max(0, flow - 1);
    else if (type === 'explicit-key-ind') inLine++;
    // In brackets each key has one, side by side.
    else if (flow === 0 && (type === 'seq-item-ind' || type === 'map-value-ind')) inLine++;
    if (flow + columns.length + (flow === 0 ? inLine : 0) > MAX_DEPTH) return offset;
    // Marks that the lexer adds are not in the text.
    if (![CST.DOCUMENT, CST.FLOW_END, CST.SCALAR].includes(token)) offset += token.length;
  }
  return undefined;
}
