/**
 * What following the first advice of a diagnosis comes to: another run of the matrix.
 *
 * A fix that is typed is applied as it stands. A fault that no setting of the log names is undone only where the advice
 * names the very thing that is to be mended; `mended` lists these, and docs/doctor.md shows the list.
 */
import { type PpoSettings, ppoSettings } from '../../src/algos/ppo/settings.ts';
import type { Diagnosis, Finding } from '../../src/doctor/index.ts';
import type { Job } from './plan.ts';
import type { Tampering } from './tamper.ts';

/** Where the run with the fix begins. */
export type From = 'start' | 'checkpoint';

/** The run that follows from the advice. */
export interface Remedy {
  readonly rule: string;
  /** Settings that were written for it, by Keel's names. */
  readonly written: PpoSettings;
  /** What else was undone, in a word; null if nothing. */
  readonly undone: string | null;
  readonly job: Job;
}

/** Advice in words, by the rule that gives it and what it tells to mend. */
const mended: readonly {
  readonly rule: string;
  readonly cause: Finding['cause'];
  readonly undoes: readonly Tampering['kind'][];
}[] = [
  // "print the rewards as the learner gets them: they must not all be equal, they must depend on the actions"
  { rule: 'no-reward', cause: 'no-reward-signal', undoes: ['constant-reward', 'noise-reward'] },
  { rule: 'critic-flat', cause: 'no-reward-signal', undoes: ['constant-reward', 'noise-reward'] },
  // "look at observations, rewards and advantages just before: assert that they are finite before they are used"
  { rule: 'non-finite', cause: 'non-finite', undoes: ['infinite-reward', 'growing-observations'] },
];

/** Keel's own key of a setting that the doctor knows by another trainer's name. */
const keyOf = (setting: string): string | undefined =>
  Object.entries(ppoSettings.keys).find(([, { doctor }]) => doctor === setting)?.[0];

/** What a fix sets, by Keel's keys; empty of advice in words. */
function settingsOf({ code, fixes: [fix] }: Finding, spelling: string): Record<string, unknown> {
  // A wrapper that normalises rewards (VecNormalize, NormalizeReward), which is a setting of Keel.
  if (code === 'reward-scale' && fix !== undefined && fix.kind !== 'setting')
    return { normaliseRewards: true };
  if (fix?.kind !== 'setting') return {};
  return Object.fromEntries(
    fix.changes.flatMap(({ setting, name, value }) => {
      if (spelling === 'keel') return [[name, value]];
      if (setting === 'rewardScale') return [['normaliseRewards', true]];
      const key = keyOf(setting);
      return key === undefined ? [] : [[key, value]];
    }),
  );
}

/** The run after the first advice; undefined where the advice changes nothing that could be done here. */
export function remedyOf(
  job: Job,
  { findings: [first] }: Diagnosis,
  { spelling, instead }: { spelling: string; instead?: PpoSettings | undefined },
): Remedy | undefined {
  if (first === undefined) return undefined;
  const written = (instead ?? settingsOf(first, spelling)) as PpoSettings;
  const undone: string[] = [];
  let { config, tampering, pull, rescale } = job;
  config = { ...config, ...written };
  // Other trainers have no upper bound, which only keeps the policy of the plan as narrow as it begins.
  if (spelling !== 'keel' && 'logStdInitial' in written)
    config = { ...config, logStdMax: ppoSettings.defaults.logStdMax };
  // The pull stands for a negative entropy bonus, which a bonus that is written takes the place of.
  if (pull !== null && 'entropyCoef' in written) {
    const { reference: _, klRefCoefInitial: __, klRefCoefFinal: ___, ...plain } = config;
    config = plain;
    pull = null;
    undone.push('negative entropy bonus');
  }
  const named = mended.find(({ rule, cause }) => rule === first.code && cause === first.cause);
  if (tampering !== null && named?.undoes.includes(tampering.kind)) {
    undone.push(tampering.kind);
    tampering = null;
  }
  // "go back to the reward of before"
  if (rescale !== null && first.code === 'reward-scale-changed') {
    undone.push('reward of before');
    rescale = null;
  }
  if (Object.keys(written).length === 0 && undone.length === 0) return undefined;
  return {
    rule: first.code,
    written,
    undone: undone.length === 0 ? null : undone.join(', '),
    job: { ...job, config, tampering, pull, rescale },
  };
}
