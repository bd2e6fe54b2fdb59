/** What a button could do about a diagnosis: the change that the doctor writes out, applied to the live run. */

import { typed } from '../../base/typed.ts';
import { type Diagnosis, loud } from '../../doctor/findings.ts';
import type { Fix } from '../../doctor/fixes.ts';
import type { CheckpointSummary, DiagnosisAnswer } from '../api.ts';
import { lastHealthy } from '../checkpoints.ts';
import type { KeelRun } from '../runs/keel-run.ts';

/** The settings of a run of Keel that fixes change, with a number each; of two changes to one the first counts. */
export function settingsIn(fixes: readonly Fix[]): [key: string, value: number][] {
  const found = new Map<string, number>();
  for (const fix of fixes) {
    for (const { name, value } of fix.kind === 'setting' ? fix.changes : [])
      if (typeof value === 'number' && !found.has(name)) found.set(name, value);
  }
  return [...found];
}

/** The buttons, and a sentence about one that cannot be there. */
export function proposals(
  run: Pick<KeelRun, 'state' | 'settingsAt'>,
  diagnosis: Diagnosis,
  checkpoints: readonly CheckpointSummary[],
  adjustable: Readonly<Record<string, number | null>>,
): Pick<DiagnosisAnswer, 'actions' | 'note'> {
  if (diagnosis.verdict === 'healthy') return { actions: [], note: null };
  const out: DiagnosisAnswer['actions'][number][] = [];
  const found = loud(diagnosis.findings);
  const fromFix = settingsIn(found.flatMap(({ fixes }) => fixes));
  const why = found[0]?.title ?? diagnosis.summary;
  const live = run.state === 'running';
  for (const [key, value] of fromFix) {
    if (!live || !(key in adjustable) || isSame(adjustable[key], value)) continue;
    out.push({
      action: { type: 'set', key, value },
      label: `Set ${key} to ${shown(value)}${adjustable[key] === null ? '' : `, now ${shown(adjustable[key])}`}`,
      why,
    });
  }
  const sick = diagnosis.verdict === 'sick';
  const healthy = lastHealthy(checkpoints);
  // What a new run would have anyway, by the settings or by a change before that checkpoint, need not be set.
  const begins = run.settingsAt(healthy?.iteration ?? 0);
  const fresh = fromFix.filter(([key, value]) => !isSame(begins[key], value));
  const changes = fresh.map(([key, value]) => `${key} ${shown(value)}`).join(', ');
  if (sick && healthy !== undefined && fresh.length > 0) {
    out.push({
      action: { type: 'restart', checkpoint: healthy.step, set: Object.fromEntries(fresh) },
      label: `${live ? 'Stop, and restart' : 'Restart'} from checkpoint ${healthy.step} with ${changes}`,
      why: 'It is the newest checkpoint from before the first critical finding; the new run names this one as its parent.',
    });
  }
  if (sick && healthy === undefined && fromFix.length > 0) {
    const all = fromFix.map(([key, value]) => `${key} ${shown(value)}`).join(', ');
    out.push({
      action: { type: 'anew', set: Object.fromEntries(fromFix) },
      label: `${live ? 'Stop, and begin' : 'Begin'} anew with ${all}`,
      why: 'There is no checkpoint from before the first critical finding; the new run has the same settings, steps and seed otherwise.',
    });
  }
  const note =
    sick && healthy === undefined
      ? `There is no checkpoint from before the first critical finding to restart from: begin anew with ${typed('train')}${changes === '' ? '' : `, with ${changes}`}.`
      : null;
  if (live && sick)
    out.push({
      action: { type: 'stop' },
      label: 'Stop the run, with a checkpoint',
      why: note === null ? why : `${why}. ${note}`,
    });
  return { actions: out, note };
}

const shown = (value: number): string => String(Number(value.toPrecision(4)));

/** Whether a setting is a value already, as far as anyone is shown of it. */
const isSame = (now: unknown, value: number): boolean =>
  typeof now === 'number' && shown(now) === shown(value);
