/** Numbers, places and findings as the rules write them. */
import type { CanonicalRun } from '../canonical.ts';
import type { Finding, Mark, RootCause, Severity } from '../findings.ts';
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
  if (!Number.isFinite(x)) return num(x);
  if (Math.abs(x) >= 1e15) return x.toExponential(2);
  return (Math.abs(x) >= 100 ? Math.round(x) : Number(x.toFixed(2))).toLocaleString('en-US');
}

/** A place with what it counts: `step 12,000`. */
export function stepAt(run: Pick<CanonicalRun, 'unit'>, x: number): string {
  return `${run.unit.replace(/s$/, '')} ${place(x)}`;
}

export function percent(share: number): string {
  return `${Math.round(100 * share)}%`;
}

/** `` `train/approx_kl` ``: the user's own name for it. */
export function name(track: Pick<Track, 'theirs'>): string {
  return `\`${track.theirs}\``;
}

export function mark(track: Track, from: number, to: number): Mark {
  return { metric: track.id, theirs: track.theirs, from, to };
}

/** A finding with what may be left out. */
export interface Draft {
  readonly severity: Severity;
  readonly title: string;
  readonly cause: RootCause | null;
  readonly confidence: number;
  readonly evidence: readonly (string | undefined)[];
  readonly fix: readonly (string | undefined)[];
  readonly watch?: string | undefined;
  readonly marks: readonly Mark[];
  readonly from?: number;
  readonly to?: number;
}

/** Makes a finding of a draft: it spans its marks, and has no empty sentences. */
export function finding(code: string, draft: Draft): Finding {
  const full = (lines: readonly (string | undefined)[]): string[] =>
    lines.filter((line): line is string => line !== undefined && line !== '');
  const from = draft.from ?? Math.min(...draft.marks.map(m => m.from));
  const to = draft.to ?? Math.max(...draft.marks.map(m => m.to));
  return {
    code,
    severity: draft.severity,
    title: draft.title,
    from: Number.isFinite(from) ? from : 0,
    to: Number.isFinite(to) ? to : 0,
    evidence: full(draft.evidence),
    cause: draft.cause,
    confidence: Math.round(100 * Math.min(1, Math.max(0, draft.confidence))) / 100,
    fix: full(draft.fix),
    ...(draft.watch === undefined ? {} : { watch: draft.watch }),
    marks: draft.marks,
  };
}

/** A change of settings in the trainer's words, or the plain sentence where it has none for them; '' for what it cannot have. */
export function change(
  run: CanonicalRun,
  changes: Parameters<CanonicalRun['wording']['setting']>[0],
  otherwise: string,
  why = '',
): string {
  const settings = Object.keys(changes) as (keyof typeof changes)[];
  if (settings.length > 0 && settings.every(setting => run.wording.lacks?.(setting))) return '';
  const typed = run.wording.setting(changes);
  const line = typed === '' ? otherwise : typed;
  return why === '' ? line : `${line} (${why})`;
}

/** A round number near `value`, of one or two digits: what a person would type. */
export function round(value: number): number {
  return value === 0 || !Number.isFinite(value) ? 0 : Number(value.toPrecision(1));
}

/** `within 50,000 steps`: a tenth of the run, at least a few rows of it. */
export function soon(run: CanonicalRun, span: number): string {
  const tenth = Number((Math.max(span, 1) / 10).toPrecision(1));
  return `within ${place(Math.max(1, tenth))} ${run.unit}`;
}
