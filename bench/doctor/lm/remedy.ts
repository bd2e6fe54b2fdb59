/**
 * What following the first advice of a diagnosis comes to: another run of the language-model matrix. A fix that is typed is
 * applied as it stands; a fault that is in no setting is undone only where the advice names the very thing that is to be mended.
 */
import { type GrpoSettings, grpoSettings } from '../../../src/algos/grpo/settings.ts';
import type { Diagnosis, Finding } from '../../../src/doctor/index.ts';
import type { LmTampering } from './faults.ts';
import type { LmJob } from './plan.ts';

/** The run that follows from the advice. */
export interface LmRemedy {
  readonly rule: string;
  /** Settings that were written for it, by Keel's names. */
  readonly written: GrpoSettings;
  /** What else was undone, in a word; null if nothing. */
  readonly undone: string | null;
  readonly job: LmJob;
}

/** Advice in words, by the rule that gives it and what it tells to mend. */
const mended: readonly {
  readonly rule: string;
  readonly cause: Finding['cause'];
  readonly undoes: readonly LmTampering['kind'][];
}[] = [
  // "compute the old log-probabilities with the weights, temperature and precision of the new ones"
  { rule: 'ratio-biased', cause: 'importance-ratio-biased', undoes: ['biased-ratio'] },
  // "turn the sign of the KL round"
  { rule: 'kl-sign', cause: 'kl-sign-wrong', undoes: ['kl-sign'] },
  // "take `…/thoroughness` out", "look for what pays for length: a part of the reward that grows with it"
  { rule: 'length-explosion', cause: 'length-explosion', undoes: ['length-reward'] },
  // "pay `…/keyword` only where the answer is right, or take it out"; without parts, "read ten of the best-paid completions"
  { rule: 'reward-hacking', cause: 'reward-hacking', undoes: ['hackable'] },
  // "let the mask of the completion end with the first end token"
  { rule: 'mask-counts-padding', cause: 'wrong-mask', undoes: ['mask'] },
  // "score with what sampled: the same temperature", "send the new weights to the sampler after every update"
  { rule: 'sampler-gap', cause: 'sampler-mismatch', undoes: ['other-temperature'] },
  { rule: 'sampler-gap', cause: 'stale-rollouts', undoes: ['stale'] },
  // "assert that they are finite before they are used"
  { rule: 'non-finite', cause: 'non-finite', undoes: ['non-finite'] },
  // "score several completions of one prompt by hand: … the reward does not look at what was written"
  { rule: 'degenerate-groups', cause: 'degenerate-groups', undoes: ['prompt-reward'] },
  // "is it the weights, the chat template, the stop token or the parser that is wrong?"
  { rule: 'malformed-outputs', cause: 'malformed-outputs', undoes: ['strict'] },
  // "score ten completions by hand: does the reward know good ones from bad?"
  {
    rule: 'reward-without-meaning',
    cause: 'no-reward-signal',
    undoes: ['noise-reward', 'constant-reward', 'prompt-reward'],
  },
  {
    rule: 'no-reward',
    cause: 'no-reward-signal',
    undoes: ['noise-reward', 'constant-reward', 'prompt-reward'],
  },
];

/** Faults that stand for a setting of another trainer, which a setting that is written takes the place of. */
const standsFor: Partial<Record<LmTampering['kind'], keyof GrpoSettings>> = {
  'entropy-sign': 'entropyCoef',
  alone: 'groupSize',
};

/** Keel's own keys of a setting that the doctor knows by another trainer's name. */
const keysOf = (setting: string): string[] =>
  Object.entries(grpoSettings.keys)
    .filter(([, { doctor }]) =>
      typeof doctor === 'object' ? doctor.writes.some(name => name === setting) : doctor === setting,
    )
    .map(([key]) => key);

/** What a fix sets, by Keel's keys; empty of advice in words. */
function settingsOf({ fixes: [fix] }: Finding, spelling: string): Record<string, unknown> {
  if (fix?.kind !== 'setting') return {};
  return Object.fromEntries(
    fix.changes.flatMap(({ setting, name, value }) =>
      spelling === 'keel' ? [[name, value]] : keysOf(setting).map(key => [key, value] as const),
    ),
  );
}

/** The run after the first advice; undefined where the advice changes nothing that could be done here. */
export function lmRemedyOf(
  job: LmJob,
  { findings: [first] }: Pick<Diagnosis, 'findings'>,
  spelling: string,
): LmRemedy | undefined {
  if (first === undefined) return undefined;
  const written = settingsOf(first, spelling) as GrpoSettings;
  const undone: string[] = [];
  let { tampering } = job;
  let config: GrpoSettings = { ...job.config, ...written };
  if (tampering !== null) {
    // What is typed is all that is done; only advice in words is taken at its word.
    const inWords = first.fixes[0]?.kind === 'prose';
    const named =
      inWords &&
      mended.some(
        ({ rule, cause, undoes }) =>
          rule === first.code && cause === first.cause && undoes.includes(tampering!.kind),
      );
    const key = standsFor[tampering.kind];
    if (named || (key !== undefined && key in written)) {
      undone.push(tampering.kind);
      tampering = null;
      // The group that the fault makes of single completions is Keel's own.
      if (key === 'groupSize') config = { ...config, groupSize: job.config.groupSize };
    } else if (tampering.kind === 'cut-is-nothing' && written.maxNewTokens !== undefined) {
      tampering = { ...tampering, maxNewTokens: written.maxNewTokens! };
    }
  }
  // A batch has whole groups.
  if (typeof written.groupSize === 'number' && job.config.groupSize !== undefined)
    config = {
      ...config,
      promptsPerIteration: Math.max(
        1,
        Math.round((job.config.promptsPerIteration! * job.config.groupSize) / Number(config.groupSize)),
      ),
    };
  if (Object.keys(written).length === 0 && undone.length === 0) return undefined;
  return {
    rule: first.code,
    written,
    undone: undone.length === 0 ? null : undone.join(', '),
    job: { ...job, config, tampering },
  };
}
