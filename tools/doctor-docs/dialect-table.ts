/** All dialects as rows of plain text, for the documentation. */
import { dialects } from '../../src/doctor/dialects/all.ts';
import type { Mapping, NamePattern } from '../../src/doctor/dialects/dialect.ts';
import { emptyLog } from '../../src/doctor/dialects/log.ts';

export interface DialectRow {
  readonly trainer: string;
  readonly title: string;
  readonly kind: 'classic' | 'language-model';
  readonly remarks: string;
  readonly metrics: readonly MetricRow[];
}

export interface MetricRow {
  /** Their names for it; `*` stands for any text. */
  readonly theirs: readonly string[];
  readonly id: string;
  /** For a KL: `step, k3, per action, last epoch, 1 row late`. */
  readonly kl?: string;
  readonly note?: string;
}

/** One row a trainer, with one row for each of its names. Keel's own names are the registry's, and are left out. */
export function dialectTable(): DialectRow[] {
  return dialects.map(({ name, title, kind, remarks, mappings }) => ({
    trainer: name,
    title,
    kind,
    remarks: remarks ?? '',
    metrics: name === 'keel' ? [] : mappings.map(rowOf),
  }));
}

function rowOf({ theirs, id, kl, note, times }: Mapping): MetricRow {
  const notes = [
    ...(note === undefined ? [] : [note]),
    ...(times === -1 && note === undefined ? ['times -1'] : []),
  ];
  const meaning = typeof kl === 'function' ? kl(emptyLog) : kl;
  return {
    theirs: readable(theirs),
    id: id.replace('$1', '<name>'),
    ...(meaning === undefined
      ? {}
      : {
          kl: [
            meaning.pair,
            meaning.estimator,
            `per ${meaning.per}`,
            meaning.aggregation.replace('-', ' '),
            ...(meaning.lag === undefined ? [] : [`${meaning.lag} row late`]),
          ].join(', '),
        }),
    ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
  };
}

/** A pattern as a person reads it: every name that it allows. */
function readable(pattern: NamePattern): string[] {
  if (typeof pattern === 'string') return [pattern];
  return [...new Set(expand(pattern.source))];
}

/** All texts of a pattern of this folder's kind: groups, alternatives, `?` and wildcards, which become `*`. */
function expand(source: string): string[] {
  let at = 0;
  const alternatives = (): string[] => {
    const all: string[] = [];
    do all.push(...sequence());
    while (source[at] === '|' && ++at > 0);
    return all;
  };
  const sequence = (): string[] => {
    let texts = [''];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') {
      let part = atom();
      if (source[at] === '?') {
        at++;
        part = ['', ...part];
      } else if (source[at] === '*' || source[at] === '+') {
        at++;
        part = ['*'];
      }
      texts = texts.flatMap(text => part.map(one => text + one));
    }
    return texts;
  };
  const atom = (): string[] => {
    const char = source[at++];
    if (char === '(') {
      if (source.startsWith('?:', at)) at += 2;
      const inside = alternatives();
      at++;
      return inside;
    }
    if (char === '[') {
      const end = source.indexOf(']', at);
      const first = source[at] === '^' ? '*' : source[end - 1];
      at = end + 1;
      return [first];
    }
    if (char === '\\') {
      const escaped = source[at++];
      return [/[dw]/.test(escaped) ? '*' : escaped];
    }
    return [char];
  };
  return alternatives();
}
