/** When a run is put before the doctor again, and who is told of what it says. */
import type { Verdict } from '../../doctor/findings.ts';
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
  busy: boolean;
  verdict: Verdict | null;
}

export const neverJudged = (): Judged => ({
  rows: 0,
  at: Number.NEGATIVE_INFINITY,
  state: '',
  busy: false,
  verdict: null,
});

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
  /** Tells of a verdict that is another than before. */
  tellVerdict(run: WatchedRun, judged: Judged): void;
}

export function createJudging({ hub, doctor, alerts, nameOf, onChange, signal }: JudgingOptions): Judging {
  function tellVerdict(run: WatchedRun, judged: Judged): void {
    const { diagnosis } = run.diagnosis;
    if (diagnosis === null) return;
    const { verdict, rootCause } = diagnosis;
    const before = judged.verdict;
    if (before === verdict) return;
    judged.verdict = verdict;
    onChange(run);
    hub.publish({ type: 'diagnosis', run: run.id, verdict, rootCause });
    // What was over before the server came is no news; nor is it that a run begins well.
    if (run.state === 'running' && !(before === null && verdict === 'healthy'))
      alerts?.tell(changeOf(nameOf(run), run.path, before, diagnosis));
  }

  return {
    tellVerdict,
    judgeIfDue(run, judged, now) {
      if (!(run instanceof KeelRun) || judged.busy || !run.loaded || run.rows === 0) return;
      const { rows, state } = run;
      if (rows === judged.rows && state === judged.state) return;
      const grew = rows > judged.rows * 1.05 || rows < judged.rows;
      if (now - judged.at < (grew || state !== judged.state ? soonMs : usualMs)) return;
      Object.assign(judged, { at: now, rows, state });
      const job = judgedRun(run);
      if (job === undefined) return;
      judged.busy = true;
      doctor
        .judge(job)
        .then(judgement => {
          run.diagnosis = judgement;
          tellVerdict(run, judged);
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
