/** Numbers, places and findings as the rules write them. */

import { whole } from '../../base/numbers.ts';
import type { CanonicalRun } from '../canonical.ts';
import type { Cite, CitedFact, Fact, Finding, Mark, RootCause, Severity } from '../findings.ts';
import { type Fix, fixOf, type SettingChange } from '../fixes.ts';
import type { Track } from './track.ts';

/** A number as a person writes it: `.0061` is `0.0061`, `12345678` is `1.2e7`. */
export function num(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'infinity' : '-infinity';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace('.0e', 'e').replace('e+', 'e');
  return String(Number(value.toPrecision(3)));
}

/** A place on the run's axis: `12,000`. */
export function place(x: number): string {
  return Number.isFinite(x) ? whole(x) : num(x);
}

/** What the run's axis counts, one of it: `step`. */
export const unitOf = ({ unit }: Pick<CanonicalRun, 'unit'>): string => unit.replace(/s$/, '');

/** A place with what it counts: `step 12,000`. */
export function stepAt(run: Pick<CanonicalRun, 'unit'>, x: number): string {
  return `${unitOf(run)} ${place(x)}`;
}

export function percent(share: number): string {
  const whole = Math.round(100 * share);
  // What is there is not 0, and what is not all is not 100.
  if (whole === 0 && share > 0) return 'less than 1%';
  return whole === 100 && share < 1 ? 'more than 99%' : `${whole}%`;
}

/** `` `train/approx_kl` ``: the user's own name for it. */
export function name(track: Pick<Track, 'theirs'>): string {
  return `\`${track.theirs}\``;
}

export function mark(track: Track, from: number, to: number): Mark {
  return { metric: track.id, theirs: track.theirs, from, to };
}

/** A sentence, or a part of one, with its facts and the stretches of series that it speaks of (`judge/facts.ts`). */
export interface Said {
  readonly text: string;
  readonly facts: readonly Fact[];
  readonly of: readonly Mark[];
}

/** A finding with what may be left out. */
export interface Draft {
  readonly severity: Severity;
  readonly title: Said | string;
  readonly cause: RootCause | null;
  readonly confidence: number;
  /** A string has no numbers in it. */
  readonly evidence: readonly (Said | string | undefined)[];
  /** A string is a sentence. */
  readonly fix: readonly (Fix | string | undefined)[];
  readonly watch?: string | undefined;
  readonly marks: readonly Mark[];
  readonly from?: number;
  readonly to?: number;
}

const plain = (said: Said | string): Said =>
  typeof said === 'string' ? { text: said, facts: [], of: [] } : said;

/** Makes a finding of a draft: it spans its marks, and has no empty sentences. */
export function finding(code: string, draft: Draft): Finding {
  const from = draft.from ?? Math.min(...draft.marks.map(m => m.from));
  const to = draft.to ?? Math.max(...draft.marks.map(m => m.to));
  const said = draft.evidence.flatMap(one => (one === undefined || one === '' ? [] : plain(one)));
  const cites = said.flatMap(({ of }, evidence): Cite[] => of.map(stretch => ({ evidence, ...stretch })));
  const title = plain(draft.title);
  const facts = [title, ...said].flatMap((one, i) =>
    one.facts.map((fact): CitedFact => ({ evidence: i === 0 ? null : i - 1, ...fact })),
  );
  const fixes = draft.fix
    .filter(fix => fix !== undefined)
    .map(fix => (typeof fix === 'string' ? fixOf(fix) : fix));
  return {
    code,
    severity: draft.severity,
    title: title.text,
    from: Number.isFinite(from) ? from : 0,
    to: Number.isFinite(to) ? to : 0,
    firstSeen: Number.isFinite(from) ? from : 0,
    evidence: said.map(({ text }) => text),
    cites,
    facts,
    cause: draft.cause,
    confidence: Math.round(100 * Math.min(1, Math.max(0, draft.confidence))) / 100,
    fix: fixes.map(({ text }) => text),
    fixes,
    ...(draft.watch === undefined ? {} : { watch: draft.watch }),
    marks: draft.marks,
  };
}

/** A change of settings in the trainer's words, or the plain sentence where it has none for them; undefined for what it cannot have. */
export function change(
  run: CanonicalRun,
  changes: Parameters<CanonicalRun['wording']['setting']>[0],
  otherwise: string,
): Fix | undefined {
  const settings = Object.keys(changes) as (keyof typeof changes)[];
  if (settings.length > 0 && settings.every(setting => run.wording.lacks?.(setting))) return undefined;
  const fix = run.wording.setting(changes);
  if (fix === undefined) return fixOf(otherwise);
  return fix.kind === 'setting' ? { ...fix, changes: fix.changes.map(one => fromNow(run, one)) } : fix;
}

/** The same change, with what the setting is now. */
const fromNow = ({ config }: CanonicalRun, one: SettingChange): SettingChange => ({
  ...one,
  from: one.from ?? config[one.setting] ?? null,
});

/** A round number near `value`, of one or two digits: what a person would type. */
export function round(value: number): number {
  return value === 0 || !Number.isFinite(value) ? 0 : Number(value.toPrecision(1));
}

/** `within 50,000 steps`: a tenth of the run, at least a few rows of it. */
export function soon(run: CanonicalRun, span: number): string {
  const tenth = Math.max(1, Number((Math.max(span, 1) / 10).toPrecision(1)));
  return `within ${place(tenth)} ${tenth === 1 ? run.unit.replace(/s$/, '') : run.unit}`;
}
