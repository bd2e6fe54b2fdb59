/** When a run is put before the doctor again, and who is told of what it says. */
import { createHash } from 'node:crypto';
import type { Diagnosis, Verdict } from '../../doctor/findings.ts';
import { type Alerts, changeOf } from '../alerts.ts';
import type { Doctor } from '../doctor/client.ts';
import { judgedRun } from '../doctor/judged-run.ts';
import type { Hub } from '../stream.ts';
import { KeelRun } from './keel-run.ts';
import type { WatchedRun } from './run.ts';

/** What is known of the judging of one run. */
export interface Judged {
  rows: number;
  at: number;
  state: string;
  /** Its settings then, with what was changed by hand. */
  settings: string;
  busy: boolean;
  verdict: Verdict | null;
  /** What everyone was told last, to tell whether there is anything new. */
  told: string;
  /** Where each finding was first seen, by its code, as long as what was read of the run holds. */
  readonly firstSeen: Map<string, number>;
  generation: number;
}

export const neverJudged = (): Judged => ({
  rows: 0,
  at: Number.NEGATIVE_INFINITY,
  state: '',
  settings: '',
  busy: false,
  verdict: null,
  told: '',
  firstSeen: new Map(),
  generation: 0,
});

/**
 * The diagnosis with the steps at which its findings were first seen, by any judgement since the log was begun: a long log
 * is looked at in fewer points than a short one, which must not move what was said of it.
 */
function keepFirstSeen(diagnosis: Diagnosis, seen: Map<string, number>): Diagnosis {
  const findings = diagnosis.findings.map(finding => {
    if (finding.severity === 'info') return finding;
    const firstSeen = Math.min(finding.firstSeen, seen.get(finding.code) ?? Number.POSITIVE_INFINITY);
    seen.set(finding.code, firstSeen);
    return firstSeen === finding.firstSeen ? finding : { ...finding, firstSeen };
  });
  return { ...diagnosis, findings };
}

/** All that is shown of a judgement, but for how long the run is; and the settings, on which the offers depend. */
function contentOf({ steps: _, ...said }: Diagnosis, run: WatchedRun): string {
  const settings = run instanceof KeelRun ? run.settings : null;
  return createHash('sha256')
    .update(JSON.stringify([said, settings]))
    .digest('base64');
}

const usualMs = 5000;
const soonMs = 1000;

export interface JudgingOptions {
  readonly hub: Hub;
  readonly doctor: Doctor;
  readonly alerts: Alerts | undefined;
  readonly nameOf: (run: WatchedRun) => string;
  /** The run's summary is no longer what everyone has. */
  readonly onChange: (run: WatchedRun) => void;
  readonly signal: AbortSignal;
}

export interface Judging {
  /** Asks the doctor about a run of Keel, if it grew or ended since. Other trainers' logs are judged as they are read. */
  judgeIfDue(run: WatchedRun, judged: Judged, now: number): void;
  /** Tells of a judgement that says something else than before; a verdict that is another is an alert too. */
  tellJudgement(run: WatchedRun, judged: Judged): void;
}

export function createJudging({ hub, doctor, alerts, nameOf, onChange, signal }: JudgingOptions): Judging {
  function tellJudgement(run: WatchedRun, judged: Judged): void {
    if (run.diagnosis.diagnosis === null) return;
    if (judged.generation !== run.generation) judged.firstSeen.clear();
    judged.generation = run.generation;
    const diagnosis = keepFirstSeen(run.diagnosis.diagnosis, judged.firstSeen);
    run.diagnosis = { ...run.diagnosis, diagnosis };
    const { verdict, rootCause } = diagnosis;
    const content = contentOf(diagnosis, run);
    if (content === judged.told) return;
    judged.told = content;
    const before = judged.verdict;
    judged.verdict = verdict;
    onChange(run);
    hub.publish({ type: 'diagnosis', run: run.id, verdict, rootCause });
    if (before === verdict) return;
    // What was over before the server came is no news; nor is it that a run begins well.
    if (run.state === 'running' && !(before === null && verdict === 'healthy'))
      alerts?.tell(changeOf(nameOf(run), run.path, before, diagnosis));
  }

  return {
    tellJudgement,
    judgeIfDue(run, judged, now) {
      if (!(run instanceof KeelRun) || judged.busy || !run.loaded || run.rows === 0) return;
      const { rows, state } = run;
      const settings = JSON.stringify(run.settings);
      const changed = state !== judged.state || settings !== judged.settings;
      if (rows === judged.rows && !changed) return;
      const grew = rows > judged.rows * 1.05 || rows < judged.rows;
      if (now - judged.at < (grew || changed ? soonMs : usualMs)) return;
      Object.assign(judged, { at: now, rows, state, settings });
      const job = judgedRun(run);
      if (job === undefined) return;
      judged.busy = true;
      doctor
        .judge(job)
        .then(judgement => {
          run.diagnosis = judgement;
          tellJudgement(run, judged);
          onChange(run);
        })
        .catch(error => {
          if (signal.aborted) return;
          run.diagnosis = {
            diagnosis: null,
            reason: `it could not be judged: ${(error as Error).message}`,
          };
        })
        .finally(() => {
          judged.busy = false;
        });
    },
  };
}
