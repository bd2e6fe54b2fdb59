/** A study in a terminal: what it has come to, in tables. */
import { toJson } from '../../base/json.ts';
import { counted, duration, grouped, number } from '../../base/numbers.ts';
import { columnsOf, fit, type Tone, table } from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { type Verdict, verdictTone, verdictWords, worstOf } from '../../doctor/findings.ts';
import { toneColours } from '../../metrics/tones.ts';
import { importanceOf } from '../../studies/importance.ts';
import type { Params, Study, Trial } from '../../studies/schema.ts';
import type { OpenStudy } from '../../studies/store.ts';
import { type Confirmed, type StudySummary, summaryOf } from '../../studies/summary.ts';
import { type Context, shownDir } from '../context.ts';

/** How many trials a table shows. */
const SHOWN = 10;

const verdictTones: Readonly<Record<Verdict, Tone>> = {
  healthy: toneColours[verdictTone.healthy],
  watch: toneColours[verdictTone.watch],
  sick: toneColours[verdictTone.sick],
  'cannot-tell': toneColours[verdictTone['cannot-tell']],
};

/** A value of a setting, short. */
export const paramText = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : typeof value !== 'number'
      ? toJson(value)
      : Number.isInteger(value)
        ? String(value)
        : number(value);

/** All settings of a trial in one line. */
export const paramsText = (params: Params): string => {
  const parts = Object.entries(params).map(([key, value]) => `${key} ${paramText(value)}`);
  return parts.length === 0 ? 'as the preset has it' : parts.join(', ');
};

/** What the worst of a trial's runs is called. */
const verdictOf = ({ outcomes }: Pick<Trial, 'outcomes'>): Verdict | null =>
  worstOf(outcomes.map(({ verdict }) => verdict));

/** The same as people read it. */
export const verdictText = (trial: Pick<Trial, 'outcomes'>): string => {
  const verdict = verdictOf(trial);
  return verdict === null ? '' : verdictWords(verdict);
};

const largestKl = ({ outcomes }: Trial): number | undefined => {
  const all = outcomes.flatMap(({ klLargest }) => (klLargest === null ? [] : [klLargest]));
  return all.length === 0 ? undefined : Math.max(...all);
};

const valueText = (value: number | null): string => (value === null ? '' : number(value));

/** The whole of it: progress, the best trials, what mattered, what was confirmed. */
export function printStudy(context: Context, { dir, study }: OpenStudy, trials: readonly Trial[]): void {
  const { print, paint } = context;
  const summary = summaryOf(study, trials);
  const { complete, pruned, failed, running } = summary.counts;
  const states = [
    counted(complete, 'trial'),
    ...(pruned > 0 ? [`${pruned} pruned`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(running > 0 ? [`${running} under way`] : []),
  ];
  print(
    `${paint(study.name, 'bold')}: ${states.join(', ')} of at most ${study.trials}, ${grouped(summary.steps)} steps, ${duration(summary.seconds)} of training: ${shownDir(dir)}`,
  );
  printTrials(context, study, trials);
  for (const { run, problem } of summary.failures.slice(0, 3)) print(`  ${run} failed: ${problem}`);
  const importance = study.space.length > 1 ? importanceOf(study.space, trials) : undefined;
  if (importance !== undefined && importance.explained > 0) {
    const shares = [...importance.axes].sort((a, b) => b.share - a.share);
    print();
    print(
      `what mattered: ${shares.map(({ key, share }) => `${key} ${Math.round(100 * share)}%`).join(', ')} (explains ${Math.round(100 * importance.explained)}% of what differs)`,
    );
  }
  printConfirmation(context, study, summary);
}

/** The best trials, best first. */
function printTrials({ raw, print, paint, columns }: Context, study: Study, trials: readonly Trial[]): void {
  const sign = study.objective.direction === 'maximize' ? -1 : 1;
  const rank = ({ value, violations, state }: Trial): number =>
    (state === 'complete' ? 0 : state === 'pruned' ? 1 : 2) +
    (violations.length > 0 ? 3 : 0) +
    (value === null ? 6 : 0);
  const ended = trials
    .filter(({ purpose, outcomes }) => purpose === 'search' && outcomes.length > 0)
    .sort((a, b) => rank(a) - rank(b) || sign * ((a.value ?? 0) - (b.value ?? 0)));
  if (ended.length === 0) return;
  const axes = study.space.map(({ key }) => key);
  const best = ended.slice(0, SHOWN);
  const states = best.map(({ violations, state }) =>
    violations.length > 0 ? 'cannot win' : state === 'complete' ? '' : state,
  );
  const hasStates = states.some(state => state !== '');
  const lines = (settings: readonly string[]): readonly string[] => {
    const rows = best.map((trial, i) => {
      const verdict = verdictOf(trial);
      const word = verdictText(trial);
      return [
        String(trial.number),
        valueText(trial.value),
        number(largestKl(trial)),
        verdict === null ? word : paint(word, verdictTones[verdict]),
        ...(hasStates ? [states[i]] : []),
        ...settings.map(key => (Object.hasOwn(trial.params, key) ? paramText(trial.params[key]) : '-')),
      ];
    });
    const head = ['trial', study.objective.metric, 'largest KL', 'verdict', ...(hasStates ? [''] : [])];
    const right = [0, 1, 2, ...settings.map((_, i) => head.length + i)];
    return table([[...head, ...settings], ...rows], right).map(line => `  ${line}`);
  };
  // Whole columns: half of a number is none.
  let fitting = axes.length;
  while (fitting > 0 && lines(axes.slice(0, fitting)).some(line => columnsOf(line) > columns)) fitting--;
  print();
  for (const line of lines(axes.slice(0, fitting))) raw(fit(line, columns));
  if (ended.length > SHOWN) raw(`  … ${ended.length - SHOWN} more`);
  if (fitting < axes.length) print(`  too wide for here: ${axes.slice(fitting).join(', ')}; --json has all`);
}

function printConfirmation(
  { raw, print, columns }: Context,
  study: Study,
  { confirmation }: StudySummary,
): void {
  if (confirmation === null) return;
  const { winner, default: base, improvement, says } = confirmation;
  const row = (name: string, one: Confirmed | null): string[][] =>
    one === null
      ? []
      : [
          [
            name,
            valueText(one.value),
            one.interval === null ? '' : `${number(one.interval.low)} to ${number(one.interval.high)}`,
            `${one.seeds[0]} to ${one.seeds.at(-1)}`,
            paramsText(one.params),
          ],
        ];
  print();
  print('on seeds that nothing was tuned on:');
  const head = ['', study.objective.over, '95%', 'seeds', ''];
  for (const line of table([head, ...row('winner', winner), ...row('default', base)], [1]))
    raw(fit(`  ${line.trimEnd()}`, columns));
  if (improvement === null) return;
  const { probability, interval } = improvement;
  print(
    `  probability that the winner is better: ${number(probability)} (${number(interval.low)} to ${number(interval.high)}): ${says}`,
  );
}

/** What to do with it. */
export function printNext(
  { print }: Context,
  { dir, study }: OpenStudy,
  { finished, hasWinner, queue }: { finished: boolean; hasWinner: boolean; queue?: string | undefined },
): void {
  const at = shownDir(dir);
  print();
  if (!finished) {
    print(`go on:   ${typed('sweep', at, ...(queue === undefined ? [] : ['--queue', queue]))}`);
    return;
  }
  if (study.space.length > 0 && hasWinner)
    print(`export:  ${typed('sweep', 'export', at, '--out', `${study.name}-best.yaml`)}`);
  print(`look:    ${typed('dash', at)}`);
}
