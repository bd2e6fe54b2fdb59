/**
 * What to change, as data; the sentence that people read is made of it, here. Runs in a browser, as findings.ts does.
 */
import type { KnownSetting } from './known-settings.ts';

/** One setting and the value that it should have. */
export interface SettingChange {
  /** The doctor's name for it: `learningRate`. */
  readonly setting: KnownSetting;
  /** The trainer's own name: `learning_rate`, `clipLow`. */
  readonly name: string;
  /** What it is now; null where the log does not say. */
  readonly from: number | string | boolean | null;
  /** What it should be, as it is typed: a number has the digits that are shown. */
  readonly value: number | string | boolean;
}

/** What can be typed as it is, and what is said beside it. */
export interface Typed {
  readonly code: string;
  readonly aside?: string;
}

/** One thing to do. `text` is the whole of it as one sentence. */
export type Fix =
  /** Settings that the trainer has; without `code` where its users change them in other ways than by one line. */
  | ({
      readonly kind: 'setting';
      readonly changes: readonly SettingChange[];
      readonly text: string;
    } & Partial<Typed>)
  /** Something else to type, in the trainer's words: a wrapper, a command. */
  | ({ readonly kind: 'code'; readonly text: string } & Typed)
  | { readonly kind: 'prose'; readonly text: string };

/** Which way a setting goes: 1, -1, or 0 where that cannot be said. */
export const wayOf = (from: unknown, to: unknown): number =>
  typeof from === 'number' && typeof to === 'number' ? Math.sign(to - from) : 0;

/** How a trainer's user would say a thing: something to type, or a sentence. */
export type Phrase = string | Typed;

const textOf = (phrase: Phrase): string => {
  if (typeof phrase === 'string') return phrase;
  return phrase.aside === undefined ? phrase.code : `${phrase.code} (${phrase.aside})`;
};

/** A fix that is said so; with the settings that it changes, if it changes any. */
export function fixOf(phrase: Phrase, changes: readonly SettingChange[] = []): Fix {
  const text = textOf(phrase);
  const typed = typeof phrase === 'string' ? undefined : phrase;
  if (changes.length > 0) return { kind: 'setting', changes, ...typed, text };
  return typed === undefined ? { kind: 'prose', text } : { kind: 'code', ...typed, text };
}

/** The same fix with something said about it: when to make it, or why. */
export function withAside(fix: Fix, said: string): Fix {
  const changes = fix.kind === 'setting' ? fix.changes : [];
  if (fix.kind === 'prose' || fix.code === undefined) return fixOf(`${said}: ${fix.text}`, changes);
  return fixOf({ code: fix.code, aside: fix.aside === undefined ? said : `${said}; ${fix.aside}` }, changes);
}

/** Several fixes that go together, as one; undefined of none. */
export function together(fixes: readonly Fix[]): Fix | undefined {
  const [first, ...rest] = fixes;
  if (first === undefined || rest.length === 0) return first;
  const text = fixes.map(fix => fix.text).join('; ');
  const isCode = fixes.every(
    fix => fix.kind !== 'prose' && fix.code !== undefined && fix.aside === undefined,
  );
  return fixOf(
    isCode ? { code: text } : text,
    fixes.flatMap(fix => (fix.kind === 'setting' ? fix.changes : [])),
  );
}
