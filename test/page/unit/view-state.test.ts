/** The address and the view are the same thing; a bad address is said and survived. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { verdicts } from '../../../src/doctor/findings.ts';
import {
  decodeView,
  defaultView,
  encodeView,
  groupFigures,
  isLog,
  sortKeys,
  tabs,
  toggleLog,
  type View,
} from '../../../web/lib/view-state.ts';

const name = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' });
/** Adding 0 turns -0, which an address does not tell from 0, into 0. */
const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 }).map(x => x + 0);
const plot = fc
  .record({
    x: fc.constantFrom('step' as const, 'iteration' as const, 'time' as const),
    range: fc.option(fc.tuple(number, fc.double({ min: 0.001, max: 1e9, noNaN: true }))),
    smooth: fc.constantFrom(0, 0.5, 0.999),
    log: fc.boolean(),
    logBut: fc.uniqueArray(name, { maxLength: 4 }),
    linear: fc.uniqueArray(name, { maxLength: 4 }),
  })
  .map(({ range, ...rest }) => ({
    ...rest,
    from: range === null ? null : range[0],
    to: range === null ? null : range[0] + range[1],
  }))
  .filter(p => p.from === null || p.from < p.to!);

const overviewView: fc.Arbitrary<View> = fc
  .record({
    query: fc.string({ maxLength: 30, unit: 'grapheme' }),
    sort: fc.constantFrom(...sortKeys),
    down: fc.boolean(),
    states: fc.constantFrom([], ['running' as const], ['failed' as const, 'killed' as const]),
    tag: fc.option(name),
    verdict: fc.option(fc.constantFrom(...verdicts)),
    environment: fc.option(name),
    trainer: fc.option(name),
    archived: fc.boolean(),
    flat: fc.boolean(),
  })
  .map(overview => ({ ...defaultView, overview }));
const runView: fc.Arbitrary<View> = fc
  .record({ run: name, tab: fc.constantFrom(...tabs), plot, focus: fc.option(name) })
  .map(v => ({ ...defaultView, page: 'run' as const, ...v }));
const compareView: fc.Arbitrary<View> = fc
  .record({
    plot,
    compare: fc.record({
      runs: fc.uniqueArray(name, { maxLength: 6 }),
      by: fc.option(name),
      of: fc.constantFrom(...groupFigures),
      metrics: fc.uniqueArray(name, { maxLength: 6 }),
      hidden: fc.uniqueArray(name, { maxLength: 6 }),
    }),
  })
  .map(v => ({ ...defaultView, page: 'compare' as const, ...v }));

const studyView: fc.Arbitrary<View> = fc
  .record({
    id: name,
    order: fc.oneof(
      fc.constantFrom('value', '-number'),
      name.map(key => `p.${key}`),
    ),
    axis: fc.option(name),
  })
  .map(study => ({ ...defaultView, page: 'study' as const, study }));

describe('view state', () => {
  test('every view comes back from its address', () => {
    fc.assert(
      fc.property(fc.oneof(overviewView, runView, compareView, studyView), view => {
        expect(decodeView(`#${encodeView(view)}`)).toEqual({ view, problems: [] });
      }),
    );
  });
  test('the usual view is a short address', () => {
    expect(encodeView(defaultView)).toBe('/');
    expect(decodeView('')).toEqual({ view: defaultView, problems: [] });
    expect(encodeView({ ...defaultView, page: 'run', run: 'a/b c' })).toBe('/runs/a%2Fb%20c');
  });
  test('no text at all breaks it', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), text => {
        const { view } = decodeView(`#/runs/x?${text}`);
        expect(view.page).toBe('run');
        expect(decodeView(`#${encodeView(view)}`).view).toEqual(view);
      }),
    );
  });
  test('what cannot be followed is named', () => {
    const { view, problems } = decodeView('#/runs/r/dcotor?x=moon&from=a&to=3&sort=size&smooth=7');
    expect(view.tab).toBe('plots');
    expect(view.plot).toMatchObject({ x: 'step', from: null, to: null, smooth: 0.999 });
    expect(problems).toHaveLength(5);
    expect(problems.join(' ')).toContain('the tab “dcotor”');
    expect(decodeView('#/nowhere').problems[0]).toContain('There is no page “/nowhere”');
    expect(decodeView('#/runs/%E0%A4%A').problems[0]).toContain('cannot be read');
  });
  test('a zoom needs two ends in order', () => {
    expect(decodeView('#/runs/r?from=5&to=2').view.plot.from).toBeNull();
    expect(decodeView('#/runs/r?from=5').view.plot.from).toBeNull();
  });
  test('at most 24 runs are compared', () => {
    const { view, problems } = decodeView(
      `#/compare?runs=${Array.from({ length: 30 }, (_, i) => i).join(',')}`,
    );
    expect(view.compare.runs).toHaveLength(24);
    expect(problems).toEqual(['The link names 30 runs; the first 24 are shown.']);
  });
  test('one plot can differ from the others in its axis', () => {
    expect(isLog({ ...defaultView.plot, log: true, logBut: ['a'] }, 'a')).toBe(false);
    expect(isLog({ ...defaultView.plot, log: false, logBut: ['a'] }, 'a')).toBe(true);
  });
  test('a plot that is logarithmic by itself can be made linear, and a choice holds when that changes', () => {
    fc.assert(
      fc.property(plot, fc.boolean(), fc.constantFrom('a', 'b'), (view, usual, metric) => {
        const other = { ...view, ...toggleLog(view, metric, usual) };
        expect(isLog(other, metric, usual)).toBe(!isLog(view, metric, usual));
      }),
    );
    const chosen = { ...defaultView.plot, ...toggleLog(defaultView.plot, 'a', false) };
    expect(isLog(chosen, 'a', true)).toBe(true);
    const linear = { ...defaultView.plot, ...toggleLog(defaultView.plot, 'a', true) };
    expect(isLog(linear, 'a', true)).toBe(false);
    expect(isLog(linear, 'b', true)).toBe(true);
  });
});
