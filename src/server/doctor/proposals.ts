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

export function proposals(
  run: KeelRun,
  diagnosis: Diagnosis,
  checkpoints: readonly CheckpointSummary[],
  adjustable: Readonly<Record<string, number | null>>,
): DiagnosisAnswer['actions'] {
  if (diagnosis.verdict === 'healthy') return [];
  const out: DiagnosisAnswer['actions'][number][] = [];
  const main = diagnosis.findings.find(({ severity }) => severity !== 'info');
  const fromFix = settingsIn(
    diagnosis.findings.flatMap(({ fix, severity }) => (severity === 'info' ? [] : fix)),
  );
  const why = main?.title ?? diagnosis.summary;
  const live = run.state === 'running';
  for (const [key, value] of fromFix) {
    if (!live || !(key in adjustable) || adjustable[key] === value) continue;
    out.push({
      action: { type: 'set', key, value },
      label: `Set ${key} to ${shown(value)}${adjustable[key] === null ? '' : `, now ${shown(adjustable[key]!)}`}`,
      why,
    });
  }
  const healthy = lastHealthy(checkpoints);
  const set = Object.fromEntries(fromFix);
  if (healthy !== undefined && diagnosis.verdict === 'sick' && fromFix.length > 0) {
    const changes = fromFix.map(([key, value]) => `${key} ${shown(value)}`).join(', ');
    out.push({
      action: { type: 'restart', checkpoint: healthy.step, set },
      label: `${live ? 'Stop, and restart' : 'Restart'} from checkpoint ${healthy.step} with ${changes}`,
      why: 'It is the newest checkpoint from before the first critical finding; the new run names this one as its parent.',
    });
  }
  if (live && diagnosis.verdict === 'sick')
    out.push({ action: { type: 'stop' }, label: 'Stop the run, with a checkpoint', why });
  return out;
}

const shown = (value: number): string => String(Number(value.toPrecision(4)));
