/**
 * Text to tokens and back. A model's `tokenizer.json` is read by @huggingface/tokenizers; a small model gets one of its
 * own, of the characters and pieces that its task writes, in the same file format, so that other tools can load it.
 */
import { Tokenizer } from '@huggingface/tokenizers';
import { fail } from './errors.ts';

/** Text to tokens and back. */
export interface TextTokenizer {
  /** One more than its highest token: a model's vocabulary must be at least this. */
  readonly size: number;
  /** The token that ends a text. */
  readonly end: number;
  /** The content of `tokenizer.json`, as it was read or made. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Tokens of a text, without any of its own at the ends. Text that it has no token for is an error. */
  encode(text: string): number[];
  /** The text of tokens, end tokens left out and nothing else: what a model wrote must be seen to be graded. */
  decode(ids: readonly number[]): string;
  /** The text of one token; of a part of a character, or where a vocabulary is larger than its tokenizer, it is `\ufffd`. */
  piece(id: number): string;
}

/** What GPT-2 calls its end. */
const END_TEXT = '<|endoftext|>';
const UNKNOWN_TEXT = '<|unknown|>';
const MAX_PIECES = 100_000;
/** What stands for something that has no text. */
export const NO_TEXT = '\ufffd';

/**
 * A tokenizer with one token for each character and each piece; of pieces that begin alike the longest that fits is
 * taken.
 */
export function ownTokenizer(characters: string, pieces: readonly string[] = []): TextTokenizer {
  const single = [...new Set(characters)];
  const longer = [...new Set(pieces)].filter(piece => !single.includes(piece));
  if (single.length === 0) fail('ownTokenizer: there are no characters: give those that texts are made of');
  if (single.length + longer.length > MAX_PIECES)
    fail(`ownTokenizer: ${single.length + longer.length} tokens, at most ${MAX_PIECES}: give fewer pieces`);
  if (longer.includes('')) fail('ownTokenizer: a piece is empty: leave it out');
  const byLength = [...longer].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
  const vocabulary = [END_TEXT, UNKNOWN_TEXT, ...single, ...longer];
  const special = (id: number, content: string) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  });
  return tokenizerFrom(
    {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: [special(0, END_TEXT), special(1, UNKNOWN_TEXT)],
      normalizer: null,
      pre_tokenizer: {
        type: 'Split',
        pattern: { Regex: [...byLength.map(escaped), '[\\s\\S]'].join('|') },
        behavior: 'Isolated',
        invert: false,
      },
      post_processor: null,
      decoder: { type: 'Fuse' },
      model: {
        type: 'WordLevel',
        vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
        unk_token: UNKNOWN_TEXT,
      },
    },
    'the own tokenizer',
  );
}

/** A tokenizer from the parsed content of a `tokenizer.json`; `source` names it in errors. */
export function tokenizerFrom(
  json: unknown,
  source: string,
  config: Readonly<Record<string, unknown>> = {},
): TextTokenizer {
  let tokenizer: Tokenizer;
  let vocabulary: Map<string, number>;
  try {
    tokenizer = new Tokenizer(json as object, { ...config, clean_up_tokenization_spaces: false });
    vocabulary = tokenizer.get_vocab(true);
  } catch (error) {
    return fail(
      `${source} cannot be used: ${(error as Error).message}: export it again with Hugging Face tokenizers`,
    );
  }
  let size = 0;
  for (const id of vocabulary.values()) if (Number.isInteger(id) && id >= size) size = id + 1;
  if (size === 0) fail(`${source} has no tokens: export it again`);
  const named = config.eos_token;
  const endText =
    typeof named === 'string' ? named : ((named as { content?: string } | undefined)?.content ?? END_TEXT);
  const end = tokenizer.token_to_id(endText);
  if (end === undefined)
    return fail(`${source} has no end token ${endText}: name it in tokenizer_config.json (eos_token)`);
  const pieces = new Map<number, string>();
  const unknown = tokenizer.token_to_id(UNKNOWN_TEXT);
  return {
    size,
    end,
    json: json as Readonly<Record<string, unknown>>,
    encode(text) {
      if (text === '') return [];
      const { ids } = tokenizer.encode(text, { add_special_tokens: false }) as { ids: number[] };
      // A damaged vocabulary has ids that its own size leaves no room for.
      const odd = ids.findIndex(id => !(Number.isInteger(id) && id >= 0 && id < size) || id === unknown);
      if (odd >= 0) {
        const before = odd === 0 ? '' : tokenizer.decode(ids.slice(0, odd), { skip_special_tokens: false });
        const at = text.startsWith(before) ? text.slice(before.length, before.length + 8) : text.slice(0, 40);
        fail(
          `${source} has no token for ${JSON.stringify(at)} in ${JSON.stringify(text.slice(0, 80))}: use the tokenizer that belongs to this task, or add the character to it`,
        );
      }
      return ids;
    },
    decode(ids) {
      let text = '';
      let known: number[] = [];
      const flush = (): void => {
        if (known.length > 0) text += tokenizer.decode(known, { skip_special_tokens: false });
        known = [];
      };
      for (const id of ids) {
        if (id === end) continue;
        if (tokenizer.id_to_token(id) !== undefined) {
          known.push(id);
          continue;
        }
        flush();
        text += NO_TEXT;
      }
      flush();
      return text;
    },
    piece(id) {
      const known = pieces.get(id);
      if (known !== undefined) return known;
      const text: string =
        tokenizer.id_to_token(id) === undefined
          ? NO_TEXT
          : tokenizer.decode([id], { skip_special_tokens: false });
      pieces.set(id, text);
      return text;
    },
  };
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
