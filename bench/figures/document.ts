/** Tables and curves of docs/results.md, made from the records. */
import { grouped } from '../../src/base/numbers.ts';
import { bootstrapInterval, interquartileMean } from '../../src/studies/statistics.ts';
import { type Panel, panelsSvg } from '../line-panels.ts';
import { median, round } from '../measure.ts';
import { presetHash } from './preset.ts';
import { isOfTask, type RunRecord, seenBefore } from './record.ts';
import { freshSeeds, tunes } from './seeds.ts';
import { type FigureTask, tasks } from './tasks.ts';

/** A task, and the fresh runs of the preset as it is now. */
interface Judged {
  readonly task: FigureTask;
  readonly runs: readonly RunRecord[];
  /** Presets of the environment that were judged on fresh seeds as well. */
  readonly others: number;
}

/** The tables of each part, by the name that marks its place in the document. */
export function tablesOf(records: readonly RunRecord[]): Record<string, string> {
  const of = (group: FigureTask['group']): Judged[] =>
    tasks
      .filter(task => task.group === group)
      .map(task => ({ task, runs: freshRuns(task, records), others: otherPresets(task, records) }))
      .filter(({ runs }) => runs.length > 0);
  const orNone = (judged: readonly Judged[], table: (judged: readonly Judged[]) => string): string =>
    judged.length === 0 ? 'No run of the presets as they are now is in the records yet.' : table(judged);
  return {
    'figures classic': orNone(of('classic'), judged => classicTable(judged, of('unguarded'))),
    'figures wild': orNone(of('wild'), wildTable),
    'figures other': orNone(of('other'), otherTable),
    'figures suite': orNone(of('suite'), suiteTable),
    'figures walking': orNone(of('walking'), walkingTable),
  };
}

/** Runs of the preset as it is now on the seeds that judge it, in their order. */
function freshRuns(task: FigureTask, records: readonly RunRecord[]): RunRecord[] {
  const preset = presetHash(task.env);
  const judging = freshSeeds([...seenBefore(), ...records], task.env, preset, task.seeds);
  return records
    .filter(one => one.preset === preset && isOfTask(one, task) && judging.includes(one.seed))
    .sort((a, b) => a.seed - b.seed);
}

function otherPresets({ env }: FigureTask, records: readonly RunRecord[]): number {
  const judged = records.filter(one => one.env === env && !tunes(one.seed) && one.preset !== presetHash(env));
  return new Set(judged.map(({ preset }) => preset)).size;
}

/** Curves of training, a panel a robot. */
export function curvesOf(records: readonly RunRecord[]): string {
  const panels = tasks
    .filter(({ group }) => group === 'suite')
    .flatMap((task): Panel[] => {
      const runs = freshRuns(task, records);
      if (runs.length === 0 || !task.published) return [];
      const lines = runs.map(({ curve }) => ({ xs: curve.map(([x]) => x), ys: curve.map(([, y]) => y) }));
      return [
        {
          title: `${task.env}: ${runs.length} ${runs.length === 1 ? 'seed' : 'seeds'}`,
          lines,
          levels: [
            { name: task.published.from, value: task.published.best, colour: '#b45309' },
            { name: 'evaluated', value: roughly(interquartileMean(evaluatedOf(runs))), colour: '#111' },
          ],
          xEnd: step => `${(step / 1e6).toFixed(1)}M steps`,
        },
      ];
    });
  return panelsSvg('Learning curves', panels);
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const table = (titles: readonly string[], rows: readonly string[][]): string[] => [
  row(titles),
  row(titles.map(() => '---')),
  ...rows.map(row),
];
const roughly = (value: number): number => round(value, Math.abs(value) < 100 ? 1 : 0);
const shown = (value: number): string =>
  Math.abs(value) < 100 ? value.toFixed(1) : grouped(Math.round(value));
const kl = (value: number): string => value.toPrecision(3).replace(/^0\./, '.');
const isWhole = ({ task, runs }: Judged): boolean => runs.length === task.seeds;

/** `1000 to 1004`, or which of them there are so far. */
const shownSeeds = (one: Judged): string => {
  const { task, runs } = one;
  if (isWhole(one)) return `${runs[0].seed} to ${runs.at(-1)!.seed}`;
  return `${runs.map(({ seed }) => seed).join(', ')} (${runs.length} of ${task.seeds} are run)`;
};
/** Which preset it was, and whether others were tried on fresh seeds. */
const shownPreset = ({ runs, others }: Judged): string =>
  `\`${runs[0].preset}\`${others === 0 ? '' : ` (${others} judged before)`}`;
const evaluatedOf = (runs: readonly RunRecord[]): number[] => runs.map(({ evaluated }) => evaluated);

/** `1,234 (1,100 to 1,400)`; of one or two there is no interval. */
function iqm(scores: readonly number[]): string {
  if (scores.length < 3) return shown(interquartileMean(scores));
  const { low, high } = bootstrapInterval(scores);
  return `${shown(interquartileMean(scores))} (${shown(low)} to ${shown(high)})`;
}

const commitsOf = (runs: readonly RunRecord[]): string =>
  [...new Set(runs.map(({ commit }) => commit))].join(', ');
const sumOf = (runs: readonly RunRecord[], of: (run: RunRecord) => number): number =>
  runs.reduce((sum, run) => sum + of(run), 0);
/** `24 of 1,960` updates. */
const guardedOf = (runs: readonly RunRecord[]): string =>
  `${sumOf(runs, run => run.guarded)} of ${grouped(sumOf(runs, run => run.updates))}`;
/** `watch (kl-high)` */
const withFindings = (verdict: string, findings: Iterable<string>): string => {
  const codes = [...findings];
  return codes.length === 0 ? verdict : `${verdict} (${codes.join(', ')})`;
};

/** `18 healthy, 2 watch (kl-high)` */
function verdicts(runs: readonly RunRecord[]): string {
  const counts = new Map<string, { runs: number; findings: Set<string> }>();
  for (const { verdict, findings } of runs) {
    const one = counts.get(verdict) ?? { runs: 0, findings: new Set() };
    one.runs++;
    for (const code of findings) one.findings.add(code);
    counts.set(verdict, one);
  }
  return [...counts]
    .map(([verdict, { runs: count, findings }]) => `${count} ${withFindings(verdict, findings)}`)
    .join(', ');
}

/** Every single return of a group, and where it comes from. */
function everyReturn(
  judged: readonly Judged[],
  columns: readonly { readonly title: string; of(run: RunRecord): number }[],
  between = ', ',
): string[] {
  return table(
    ['task', 'preset', 'commit', 'minutes a run', ...columns.map(({ title }) => title)],
    judged.map(one => {
      const { task, runs } = one;
      return [
        task.id,
        shownPreset(one),
        commitsOf(runs),
        median(runs.map(({ minutes }) => minutes)).toFixed(1),
        ...columns.map(({ of }) => runs.map(run => shown(of(run))).join(between)),
      ];
    }),
  );
}

const most = (runs: readonly RunRecord[], of: (run: RunRecord) => number): number =>
  Math.max(...runs.map(of));

function classicTable(judged: readonly Judged[], free: readonly Judged[]): string {
  const rows = judged.map(one => {
    const { task, runs } = one;
    const aim = task.aim!;
    const reached = runs.filter(({ evaluated }) => evaluated >= aim).length;
    const without = free.find(other => other.task.env === task.env);
    const lost = without?.runs.filter(
      ({ seed, evaluated }) => evaluated >= aim && runs.some(run => run.seed === seed && run.evaluated < aim),
    );
    return [
      task.env,
      grouped(runs[0].steps),
      shownSeeds(one),
      iqm(evaluatedOf(runs)),
      shown(Math.min(...evaluatedOf(runs))),
      `${reached} of ${runs.length} at ${aim}${isWhole(one) ? ` (${task.seedsAtAim} wanted: ${reached >= task.seedsAtAim! ? 'yes' : '**no**'})` : ''}`,
      kl(most(runs, run => run.klLargest)),
      String(most(runs, run => run.klLongest)),
      guardedOf(runs),
      verdicts(runs),
      without === undefined
        ? 'not run'
        : `${without.runs.filter(({ evaluated }) => evaluated >= aim).length} of ${without.runs.length}, ${kl(most(without.runs, run => run.klLargest))}; lost by the guard: ${lost!.length === 0 ? 'none' : lost!.map(({ seed }) => seed).join(', ')}`,
    ];
  });
  return [
    ...table(
      [
        'task',
        'steps',
        'seeds',
        'IQM (95 %)',
        'worst',
        'reached',
        'largest `kl/step`',
        'rows in a row above .03',
        'updates guarded',
        'verdicts',
        'without the guard: reached, largest `kl/step`',
      ],
      rows,
    ),
    '',
    ...everyReturn(judged, [{ title: 'returns, in the order of seeds', of: run => run.evaluated }]),
  ].join('\n');
}

function wildTable(judged: readonly Judged[]): string {
  return table(
    [
      'task',
      'learning rate',
      'guard',
      'seeds',
      'IQM (95 %)',
      'returns, in the order of seeds',
      'largest `kl/step`',
      'before the guard',
      'updates guarded',
      'commit',
    ],
    judged.map(one => {
      const { task, runs } = one;
      return [
        task.env,
        `${String(task.changes.learningRate)}, ${task.changes.learningRateSchedule === 'constant' ? 'constant' : 'falling'}`,
        runs[0].guard === null ? 'off' : String(runs[0].guard),
        shownSeeds(one),
        iqm(evaluatedOf(runs)),
        evaluatedOf(runs).map(shown).join(', '),
        kl(most(runs, run => run.klLargest)),
        kl(most(runs, run => run.klLargestRaw)),
        runs[0].guard === null ? '' : guardedOf(runs),
        commitsOf(runs),
      ];
    }),
  ).join('\n');
}

/** What has no aim. */
function otherTable(judged: readonly Judged[]): string {
  const rows = judged.map(one => {
    const { task, runs } = one;
    return [
      task.env,
      grouped(runs[0].steps),
      shownSeeds(one),
      iqm(evaluatedOf(runs)),
      iqm(runs.map(({ trained }) => trained)),
      kl(most(runs, run => run.klLargest)),
      String(most(runs, run => run.klLongest)),
      verdicts(runs),
    ];
  });
  const titles = ['task', 'steps', 'seeds', 'evaluated: IQM (95 %)', 'in training: IQM (95 %)'];
  return [
    ...table([...titles, 'largest `kl/step`', 'rows in a row above .03', 'verdicts'], rows),
    '',
    ...everyReturn(judged, [
      { title: 'evaluated, in the order of seeds', of: run => run.evaluated },
      { title: 'in training', of: run => run.trained },
    ]),
  ].join('\n');
}

function suiteTable(judged: readonly Judged[]): string {
  const rows = judged.map(one => {
    const { task, runs } = one;
    const { best, from, plain } = task.published!;
    const trained = runs.map(run => run.trained);
    const against = (scores: readonly number[]): string => {
      const score = interquartileMean(scores);
      return score >= best ? 'yes' : `no (${((100 * (score - best)) / Math.abs(best)).toFixed(1)} %)`;
    };
    return [
      task.env,
      shownSeeds(one),
      `**${iqm(evaluatedOf(runs))}**`,
      iqm(trained),
      `${shown(best)} (${from})`,
      isWhole(one) ? `${against(evaluatedOf(runs))}, ${against(trained)}` : 'not all run',
      plain,
      kl(most(runs, run => run.klLargest)),
      String(most(runs, run => run.klLongest)),
      verdicts(runs),
    ];
  });
  return [
    ...table(
      [
        'task',
        'seeds',
        'evaluated: IQM (95 %)',
        'in training: IQM (95 %)',
        'best published',
        'reached: evaluated, in training',
        'CleanRL',
        'largest `kl/step`',
        'rows in a row above .03',
        'verdicts',
      ],
      rows,
    ),
    '',
    ...everyReturn(
      judged,
      [
        { title: 'evaluated, in the order of seeds', of: run => run.evaluated },
        { title: 'in training', of: run => run.trained },
      ],
      '; ',
    ),
  ].join('\n');
}

function walkingTable(judged: readonly Judged[]): string {
  return table(
    [
      'robot',
      'seed',
      'walks of 100',
      'mean speed, m/s (slowest, fastest)',
      'steady',
      'return, evaluated and in training',
      '`kl/step`: median, largest',
      'guard acted',
      'verdict',
      'minutes',
      'commit',
    ],
    judged.flatMap(({ runs }) =>
      runs.map(run => {
        const { walked, steady, speedMean, speedLeast, speedMost } = run.walks!;
        return [
          run.env,
          String(run.seed),
          `**${walked}**`,
          `${speedMean.toFixed(2)} (${speedLeast.toFixed(2)}, ${speedMost.toFixed(2)})`,
          String(steady),
          `${shown(run.evaluated)}, ${shown(run.trained)}`,
          `${kl(run.klMedian)}, ${kl(run.klLargest)}`,
          guardedOf([run]),
          withFindings(run.verdict, run.findings),
          run.minutes.toFixed(1),
          run.commit,
        ];
      }),
    ),
  ).join('\n');
}
