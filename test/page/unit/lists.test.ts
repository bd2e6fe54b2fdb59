/** Lists of runs, groups, pins, and the stream's text. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MetricInfo } from '../../../src/server/api.ts';
import { diffConfigs, groupProblems, groupRuns, legendOf, valueAt } from '../../../web/lib/compare.ts';
import { groupLine } from '../../../web/lib/group-line.ts';
import { companionOf, layoutPlots, plotTitle } from '../../../web/lib/layout.ts';
import {
  countStates,
  countValues,
  countVerdicts,
  filterRuns,
  groupOf,
  matches,
  nameOfGroup,
  parseTags,
  rowsOf,
  selectRuns,
  settingsWith,
} from '../../../web/lib/overview.ts';
import { describeGroup, groupAt, groupPins, type Pin } from '../../../web/lib/pins.ts';
import { backoffMs, createEventParser, restAfter } from '../../../web/lib/sse.ts';
import { bandOf } from '../../../web/lib/tone.ts';
import { defaultView, eachRun } from '../../../web/lib/view-state.ts';
import { fakeRun, summaryOf } from '../support/fake-runs.ts';
import { gallery, seedGallery } from '../support/gallery.ts';

const runs = gallery().map(summaryOf);
const view = defaultView.overview;

describe('the overview', () => {
  test('orders by any column, without a value last either way', () => {
    for (const down of [true, false]) {
      const kl = selectRuns(runs, { ...view, sort: 'kl', down }).map(run => run.lastKl);
      const some = kl.filter(v => v !== null);
      expect(some).toEqual([...some].sort((a, b) => (down ? b - a : a - b)));
      expect(kl.slice(some.length).every(v => v === null)).toBe(true);
    }
    expect(selectRuns(runs, { ...view, sort: 'verdict', down: true })[0].verdict).toBe('sick');
  });
  test('running runs keep their places while they are written', () => {
    const order = (shift: number) =>
      selectRuns(
        runs.map((run, i) =>
          run.state === 'running' ? { ...run, updatedAt: run.updatedAt + shift * (i % 3) } : run,
        ),
        view,
      ).map(run => run.id);
    expect(order(5000)).toEqual(order(0));
    expect(order(0).slice(0, 3)).toEqual(['new', 'live', 'sick']);
  });
  test('numbers in names are ordered as numbers', () => {
    const named = ['run-10', 'run-9', 'run-1'].map(id => summaryOf(fakeRun({ id })));
    expect(selectRuns(named, { ...view, sort: 'name', down: false }).map(run => run.id)).toEqual([
      'run-1',
      'run-9',
      'run-10',
    ]);
  });
  test('filters by state, tag, archive and words', () => {
    expect(selectRuns(runs, { ...view, states: ['failed'] }).map(run => run.id)).toEqual(['failed']);
    expect(selectRuns(runs, { ...view, tag: 'baseline' }).map(run => run.id)).toEqual(['live']);
    expect(selectRuns(runs, { ...view, archived: true }).map(run => run.id)).toEqual(['old']);
    expect(matches(runs.find(run => run.id === 'sick')!, 'HOPPER  sweep')).toBe(true);
    expect(matches(runs.find(run => run.id === 'sick')!, 'hopper walker')).toBe(false);
  });
  test('tags are counted and parsed', () => {
    expect(countValues(runs, run => run.notes.tags)[0]).toEqual({ value: 'sweep-3', count: 3 });
    expect(parseTags(' a, #b  a,,c ')).toEqual(['a', 'b', 'c']);
    expect(parseTags('x'.repeat(100))[0]).toHaveLength(40);
  });
  test("a KL has the band of its run's own contract, where bands hold for it", () => {
    const of = (more: object) =>
      bandOf({ lastKl: 0.025, klBand: 'warning', klContract: {}, atRest: false, ...more });
    expect(of({})!.name).toBe('warning');
    expect(of({ klContract: { target: 0.03, guard: 0.05 } })!.name).toBe('healthy');
    expect(of({ lastKl: 0, atRest: true })!).toMatchObject({ name: 'frozen', tone: 'muted' });
    expect(of({ klBand: null })).toBeNull();
    expect(of({ lastKl: null })).toBeNull();
  });
});

describe('runs that differ only in their seed', () => {
  const seeds = seedGallery().map(summaryOf);
  const slow = seeds.filter(run => run.group === 'slow');
  test('are one row, with the worst of them, that unfolds in place', () => {
    const shown = selectRuns(seeds, view);
    const rows = rowsOf(shown, view, new Set());
    expect(rows.map(row => row.key).sort()).toEqual(['child', 'empty', 'fast', 'lost', 'sb3', 'slow']);
    const open = rowsOf(shown, view, new Set(['slow']));
    const at = open.findIndex(row => row.key === 'slow');
    expect(open.slice(at + 1, at + 6).map(row => row.kind === 'run' && row.inGroup)).toEqual(
      Array(5).fill(true),
    );
    expect(rowsOf(shown, { ...view, flat: true }, new Set())).toHaveLength(shown.length);
    // What a filter leaves of a group is a group of its own, or a run.
    const failed = rowsOf(selectRuns(seeds, { ...view, states: ['failed'] }), view, new Set());
    expect(failed.map(row => row.key)).toEqual(['slow4']);
  });
  test('come to a middle, the worst verdict and the loudest KL', () => {
    const { all, name } = groupOf('slow', slow);
    expect(name).toBe('hopper-lr-0.0003');
    expect(all).toMatchObject({ verdict: 'watch', state: 'failed', seed: null });
    const returns = slow.map(run => run.lastReturn!).sort((a, b) => a - b);
    expect(all.lastReturn).toBeCloseTo((returns[1] + returns[2] + returns[3]) / 3, 9);
    expect(all.lastKl).toBeGreaterThan(0);
    expect(countStates(slow)).toEqual([
      { state: 'failed', count: 1 },
      { state: 'finished', count: 4 },
    ]);
    expect(countVerdicts(slow)).toEqual([
      { verdict: 'watch', count: 1 },
      { verdict: 'healthy', count: 4 },
    ]);
  });
  test('are called by what their names share', () => {
    expect(nameOfGroup(['cartpole-20260115-103000-seed1-k3f9', 'cartpole-20260115-104512-seed2-aaaa'])).toBe(
      'cartpole',
    );
    expect(nameOfGroup(['a-lr-3e-4-seed-10', 'a-lr-3e-4-seed-11'])).toBe('a-lr-3e-4');
    expect(nameOfGroup(['runs/ppo__1', 'runs/ppo__2'])).toBe('runs/ppo');
    expect(nameOfGroup(['PPO_1', 'A2C_1'])).toBe('PPO_1');
  });
  test('are one line of compare by default, each its own on demand', () => {
    const some = [...slow, ...seeds.filter(run => run.id === 'sb3')].map(run => ({
      name: run.name,
      detail: { config: {}, run },
      problem: null,
    }));
    expect(legendOf(some, null).map(({ label, runs }) => [label, runs.length])).toEqual([
      ['hopper-lr-0.0003', 5],
      ['PPO_7', 1],
    ]);
    expect(legendOf(some, eachRun)).toHaveLength(6);
  });
});

describe('filters', () => {
  test('by what a run is, each counted while all others hold', () => {
    const sick = { ...view, verdict: 'sick' as const };
    expect(filterRuns(runs, sick).map(run => run.verdict)).toEqual(['sick', 'sick']);
    expect(filterRuns(runs, { ...sick, environment: 'Hopper' }).map(run => run.id)).toEqual(['sick']);
    expect(filterRuns(runs, { ...view, trainer: 'stable-baselines3' }).map(run => run.id)).toEqual(['sb3']);
    expect(
      countValues(filterRuns(runs, { ...sick, environment: 'Hopper' }, null, 'verdict'), run => [
        run.verdict,
      ]),
    ).toEqual([{ value: 'sick', count: 1 }]);
    expect(
      countValues(filterRuns(runs, { ...sick, environment: 'Hopper' }, null, 'environment'), run => [
        run.environment,
      ]).map(({ value }) => value),
    ).toEqual(['CartPole-v1', 'Hopper']);
  });
  test('a search looks in settings too', () => {
    const all = { settings: ['learningRate=0.001', 'guard=null'], runs: { sick: [0, 1], a1: [1] } };
    const found = (query: string) => filterRuns(runs, { ...view, query }, all).map(run => run.id);
    expect(found('learningRate=0.001')).toEqual(['sick']);
    expect(found('guard')).toEqual(['sick', 'a1']);
    expect(found('hopper LEARNINGRATE')).toEqual(['sick']);
    expect(found('learningRate=0.002')).toEqual([]);
    expect(settingsWith(null, 'guard')('sick', 'guard')).toBe(false);
    expect(settingsWith(all, 'toString')('toString', 'toString')).toBe(false);
  });
});

describe('pins', () => {
  const pin = (x: number, weight = 1, kind = 'k'): Pin => ({ x, kind, weight, text: `${kind} at ${x}` });

  test('those near each other are one; none is lost; groups keep their distance', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 200 }), xs => {
        const pins = xs.sort((a, b) => a - b).map((x, i) => pin(x, i % 7));
        const groups = groupPins(pins, x => x / 2, 500, 15);
        expect(new Set(groups.flatMap(c => c.pins))).toEqual(new Set(pins));
        expect(groups.reduce((sum, c) => sum + c.pins.length, 0)).toBe(pins.length);
        for (const { left, lead, pins } of groups) {
          expect(left).toBe(lead.x / 2);
          expect(lead.weight).toBe(Math.max(...pins.map(p => p.weight)));
          for (const { x } of pins) expect(Math.abs(x / 2 - left)).toBeLessThan(15);
        }
        for (let i = 1; i < groups.length; i++)
          expect(groups[i].left - groups[i - 1].left).toBeGreaterThanOrEqual(15);
      }),
    );
  });
  test('the loudest leads, what is out of sight is left out, the nearest within reach is found', () => {
    const groups = groupPins([pin(-50), pin(10), pin(12, 9, 'loud'), pin(300), pin(900)], x => x, 500, 15);
    expect(groups.map(c => [c.left, c.lead.kind, c.pins.length])).toEqual([
      [12, 'loud', 2],
      [300, 'k', 1],
    ]);
    expect(groupAt(groups, 295, 7)!.left).toBe(300);
    expect(groupAt(groups, 200, 7)).toBeNull();
    expect(
      describeGroup({ ...groups[0], pins: [pin(1), pin(2), pin(3, 9, 'loud')] }, kind => kind.toUpperCase()),
    ).toEqual(['LOUD: loud at 3', '2 × K, such as: k at 1']);
  });
});

describe('what lasts', () => {
  const lasting = (x: number, to: number): Pin => ({ x, to, kind: 'finding', weight: 9, text: '' });
  test('is kept while any of it is in view, at the left edge if it began before', () => {
    fc.assert(
      fc.property(fc.integer({ min: -500, max: 1000 }), fc.integer({ min: 0, max: 1000 }), (from, length) => {
        const pin = lasting(from, from + length);
        const groups = groupPins([pin], x => x, 500, 15);
        expect(groups.flatMap(c => c.pins)).toEqual(from + length >= 0 && from <= 500 ? [pin] : []);
        if (groups.length > 0) expect(groups[0].left).toBe(Math.max(0, from));
      }),
    );
  });
});

describe('compare', () => {
  test('what a link groups by: a run that is gone is named and in no group, a setting that none has is said', () => {
    const run = (name: string, lr: number | null, problem: string | null = null) => ({
      name,
      detail: lr === null ? null : { config: { lr }, run: { group: null } },
      problem,
    });
    const runs = [run('a', 1), run('gone', null, 'not found'), run('b', 2)];
    expect(legendOf(runs, 'lr').map(g => [g.label, g.color, g.runs.map(r => r.name)])).toEqual([
      ['lr 1', 0, ['a']],
      ['lr 2', 1, ['b']],
    ]);
    expect(legendOf(runs, null).map(g => g.label)).toEqual(['a', 'gone', 'b']);
    expect(groupProblems(runs, null)).toEqual([]);
    expect(groupProblems(runs, 'lr')).toEqual(['“gone” is left out: not found.']);
    expect(groupProblems(runs, 'toString').at(-1)).toBe(
      'None of these runs has a setting “toString” to group by.',
    );
    // Not before it is known.
    expect(groupProblems([run('a', 1), run('late', null)], 'epochs')).toEqual([]);
  });
  test('a line is read between its points and not beyond them', () => {
    expect([0, 1, 2, 3, 4, 5].map(x => valueAt([1, 3, 4], [10, 30, null], x))).toEqual([
      null,
      10,
      20,
      30,
      null,
      null,
    ]);
  });
  const lineOf = (x: number[], mean: number[], max = mean) => ({
    x,
    mean,
    min: mean,
    max,
    count: x.map(() => 1),
    broken: [],
  });
  test('a group is its figure and an interval within its runs; where one ends the others go on, and it is said', () => {
    const { line, peak, ends } = groupLine(
      [lineOf([0, 100], [0, 10]), lineOf([0, 100], [2, 14]), lineOf([0, 50], [4, 4], [4, 90])],
      'mean',
    );
    expect([line.x[0], line.x.at(-1)]).toEqual([0, 100]);
    expect(line.mean[0]).toBeCloseTo(2, 12);
    expect(line.mean.at(-1)).toBeCloseTo(12, 12);
    expect([line.count[0], line.count.at(-1)]).toEqual([3, 2]);
    expect(ends).toEqual([{ x: 50, left: 2 }]);
    expect(Math.max(...peak.map(v => v ?? 0))).toBe(90);
    expect(groupLine([], 'iqm').line.x).toEqual([]);
    const one = groupLine([lineOf([3], [7])], 'iqm');
    expect([one.line.mean, one.line.min, one.line.max, one.ends]).toEqual([[7], [7], [7], []]);
    // Not ended: a row of another length at the end.
    expect(groupLine([lineOf([0, 1000], [1, 1]), lineOf([0, 998], [1, 1])], 'iqm').ends).toEqual([]);
  });
  test('the band of a group never leaves what its runs had', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.double({ min: -1e6, max: 500, noNaN: true }), { minLength: 2, maxLength: 6 }), {
          minLength: 2,
          maxLength: 5,
        }),
        fc.constantFrom('iqm', 'median', 'mean'),
        (runs, of) => {
          const all = runs.flat();
          const [low, high] = [Math.min(...all) - 1e-6, Math.max(...all) + 1e-6];
          const { line } = groupLine(
            runs.map(values => lineOf([...values.keys()], values)),
            of,
          );
          for (const v of [...line.min, ...line.max, ...line.mean]) {
            if (v === null) continue;
            expect(v).toBeGreaterThanOrEqual(low);
            expect(v).toBeLessThanOrEqual(high);
          }
        },
      ),
      { numRuns: 8 },
    );
  });
  test('groups are in the order of their values, and differences are found', () => {
    const items = [1e-3, 3e-4, 1e-3, undefined].map((lr, item) => ({
      item,
      config: lr === undefined ? {} : { lr },
    }));
    expect(groupRuns(items, 'lr')).toEqual([
      { label: 'without lr', items: [3] },
      { label: 'lr 0.0003', items: [1] },
      { label: 'lr 0.001', items: [0, 2] },
    ]);
    const rows = diffConfigs([[{ a: 1, b: null }], [{ a: 1, b: 'none' }], [{ a: 1 }]]);
    expect(rows.map(row => [row.key, row.differs])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    // A number and its text are two settings.
    expect(diffConfigs([[{ a: 1 }], [{ a: '1' }]])[0].differs).toBe(true);
    // A log that does not say does not differ, and what the runs of a column have is said once.
    expect(diffConfigs([[{ a: 1 }], [{}]])[0]).toEqual({ key: 'a', cells: [[1], []], differs: false });
    expect(diffConfigs([[{ s: 1 }, { s: 2 }, { s: 1 }]])[0]).toMatchObject({
      cells: [[1, 2]],
      differs: true,
    });
    expect(diffConfigs([[{ toString: 1 } as never], [{}]])[0].cells).toEqual([[1], []]);
  });
});

describe('which plots', () => {
  const metric = (id: string, group: string): MetricInfo => ({
    id,
    theirs: id,
    group,
    title: id,
    unit: '1',
    doc: '',
    healthy: null,
    points: 1,
    last: 1,
  });

  test('the four of the registry first, then groups in its order, axes never', () => {
    const layout = layoutPlots(
      [
        'time/collect_s',
        'loss/value',
        'grad/norm',
        'train/step',
        'kl/step',
        'episode/return',
        'value/explained_variance',
        'kl/step_k3',
      ].map(id => metric(id, id.split('/')[0])),
    );
    expect(layout.headline.map(m => m.id)).toEqual([
      'kl/step',
      'episode/return',
      'value/explained_variance',
      'loss/value',
    ]);
    expect(layout.groups.map(g => [g.id, g.metrics.map(m => m.id)])).toEqual([
      ['kl', ['kl/step_k3']],
      ['grad', ['grad/norm']],
      ['time', ['time/collect_s']],
    ]);
  });
  test('returns have evaluations beside them, where there are some', () => {
    const both = ['episode/return', 'eval/return'].map(id => metric(id, 'episode'));
    expect(companionOf('episode/return', both)).toEqual({ id: 'eval/return', label: 'evaluation' });
    expect(companionOf('episode/return', both.slice(0, 1))).toBeUndefined();
    expect(companionOf('eval/return', both)).toBeUndefined();
  });
  test('what another trainer lacks is stood in for; unknown names have a place', () => {
    const layout = layoutPlots([
      metric('reward/mean', 'reward'),
      metric('kl/ref', 'kl'),
      metric('policy/entropy', 'policy'),
      metric('my stuff', 'custom'),
      metric('odd', ''),
    ]);
    expect(layout.headline.map(m => m.id)).toEqual(['kl/ref', 'reward/mean', 'policy/entropy']);
    expect(layout.groups.map(g => g.title)).toEqual(['Others', 'custom']);
  });
  test('members of a family go by their own name', () => {
    expect(plotTitle({ id: 'env/altitude', title: 'x' })).toBe('altitude');
    expect(plotTitle({ id: 'reward/part/fall', title: 'x' })).toBe('part/fall');
    expect(plotTitle({ id: 'kl/step', title: 'KL of the update' })).toBe('KL of the update');
  });
});

describe('the stream', () => {
  const stream =
    ': hello\n\nid: 1\ndata: {"a":1}\n\nevent: x\r\nid: 2\r\ndata: one\r\ndata:two\r\n\r\ndata\n\nid: 3\n\ndata: end\n\n';
  const events = [
    { id: '1', data: '{"a":1}' },
    { id: '2', data: 'one\ntwo' },
    { id: '2', data: '' },
    { id: '3', data: 'end' },
  ];
  test('is read the same however it is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: stream.length - 1 }), { maxLength: 12 }), cuts => {
        const parse = createEventParser();
        const at = [0, ...cuts.sort((a, b) => a - b), stream.length];
        const found = at.slice(1).flatMap((end, i) => parse(stream.slice(at[i], end)));
        expect(found).toEqual(events);
      }),
    );
  });
  test('waits longer each time, to 15 s, and not all pages at once', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 60].map(n => backoffMs(n, 0.5))).toEqual([
      500, 1000, 2000, 4000, 8000, 15000, 15000, 15000,
    ]);
    expect(backoffMs(3, 0)).toBeLessThan(backoffMs(3, 1));
  });
  test('what fits into half a frame is done in every frame; more leaves four fifths of the time, for half a second at most', () => {
    expect([0, 7.9, 8, 100, 1e4].map(restAfter)).toEqual([0, 0, 32, 400, 500]);
  });
});
