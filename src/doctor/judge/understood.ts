/** What the log was taken to say: which column is which metric, which settings are known, and what is missing. */
import { objectiveOf } from '../canonical.ts';
import type { Understood } from '../findings.ts';
import type { KnownSetting } from '../known-settings.ts';
import type { Signals } from '../rules/signals.ts';

/** No more than so many names that nobody understood are listed. */
const MOST_NAMES = 50;

export function understoodOf(signals: Signals): Understood {
  const { run, from, to, logged } = signals;
  return {
    columns: [...run.series.values()].map(({ id, theirs }) => ({ metric: id, theirs })),
    settings: (Object.entries(run.config) as [KnownSetting, number | string | undefined][]).flatMap(
      ([setting, value]) =>
        value === undefined ? [] : [{ setting, name: run.wording.nameOf(setting) ?? setting, value }],
    ),
    rows: logged,
    from,
    to,
    notUnderstood: run.unknown.slice(0, MOST_NAMES),
    absent: absentOf(signals),
  };
}

/** What a verdict rests on, and the log does not have. */
function absentOf({ run, kl, critic }: Signals): Understood['absent'] {
  const isModel = run.kind === 'language-model';
  const out: { metric: string; why: string }[] = [];
  if (objectiveOf(run) === undefined)
    out.push({
      metric: isModel ? 'reward/mean' : 'episode/return',
      why: 'without it nobody can tell whether the run learns anything',
    });
  if (kl === undefined)
    out.push({ metric: 'kl/step', why: 'without it nobody can tell how far an update moves the policy' });
  if (isModel && !run.series.has('kl/ref'))
    out.push({
      metric: 'kl/ref',
      why: 'without it nobody can tell how far the policy is from its reference',
    });
  if (!isModel && critic.ev === undefined && critic.loss === undefined)
    out.push({
      metric: 'value/explained_variance',
      why: 'without it, and without a value loss, nobody can tell whether the critic learns',
    });
  return out;
}
