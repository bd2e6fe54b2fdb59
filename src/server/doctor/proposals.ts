/** What a button could do about a diagnosis: the change that the doctor writes out, applied to the live run. */
import type { Diagnosis } from '../../doctor/findings.ts';
import type { CheckpointSummary, DiagnosisAnswer } from '../api.ts';
import { lastHealthy } from '../checkpoints.ts';
import type { KeelRun } from '../runs/keel-run.ts';

/** `keel train … --set learningRate=1e-4 --set targetKl=.02` → its pairs with a number. */
export function settingsIn(fix: readonly string[]): [key: string, value: number][] {
  const found = new Map<string, number>();
  for (const text of fix) {
    for (const [, key, value] of text.matchAll(/--set\s+([A-Za-z][A-Za-z0-9]*)=([-+.\deE]+)/g)) {
      const number = Number(value);
      if (Number.isFinite(number) && !found.has(key!)) found.set(key!, number);
    }
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
  const main = diagnosis.findings.find(({ severity }) => severity !== 'info');
  const fromFix = settingsIn(
    diagnosis.findings.flatMap(({ fix, severity }) => (severity === 'info' ? [] : fix)),
  );
  const why = main?.title ?? diagnosis.summary;
  const live = run.state === 'running';
  for (const [key, value] of fromFix) {
    if (!live || !(key in adjustable) || isSame(adjustable[key], value)) continue;
    out.push({
      action: { type: 'set', key, value },
      label: `Set ${key} to ${shown(value)}${adjustable[key] === null ? '' : `, now ${shown(adjustable[key]!)}`}`,
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
  const note =
    sick && healthy === undefined
      ? `There is no checkpoint from before the first critical finding to restart from: begin anew with keel train${changes === '' ? '' : `, with ${changes}`}.`
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
