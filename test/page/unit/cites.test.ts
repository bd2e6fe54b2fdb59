/** What a click on a sentence of the evidence leads to. */
import { expect, test } from 'vitest';
import { citedIn, objectiveIn, spanOf, windowAround } from '../../../web/lib/cites.ts';
import { detailOf, diagnosisOf, fakeRun } from '../support/fake-runs.ts';

const run = fakeRun({ id: 'sick', health: 'sick' });
const { metrics } = detailOf(run);
const [first, second] = diagnosisOf(run).diagnosis!.findings;

test('a sentence leads to the series that it cites, by either name, if the run has it', () => {
  expect(citedIn(first, 0, metrics).map(({ metric }) => metric)).toEqual(['kl/step']);
  expect(citedIn(first, 1, metrics)).toEqual([]);
  expect(
    citedIn(
      second,
      0,
      metrics.filter(({ id }) => id !== 'episode/return'),
    ),
  ).toEqual([]);
  const renamed = metrics.map(metric =>
    metric.id === 'kl/step' ? { ...metric, id: 'train/approx_kl', theirs: 'kl/step' } : metric,
  );
  expect(citedIn(first, 0, renamed)).toHaveLength(1);
  expect(objectiveIn(metrics)?.id).toBe('episode/return');
  expect(objectiveIn([])).toBeUndefined();
});

test('a sentence that names two steps leads to what is between them', () => {
  const [cite] = first.cites;
  const at = (from: number, to = from) => ({ ...cite, evidence: 0, from, to });
  const said = (...cites: (typeof cite)[]) =>
    citedIn({ ...first, cites }, 0, metrics).map(({ from, to }) => [from, to]);
  expect(said(at(0, 9000), at(2000), at(3000))).toEqual([[2000, 3000]]);
  expect(said(at(0, 9000), at(2000))).toEqual([
    [0, 9000],
    [2000, 2000],
  ]);
  expect(said(at(0, 9000))).toEqual([[0, 9000]]);
});

test('the window is the stretch with room around it, also around a single step', () => {
  expect(spanOf([])).toBeNull();
  const span = spanOf([
    { from: 300, to: 400 },
    { from: 100, to: 350 },
  ])!;
  expect(span).toEqual({ from: 100, to: 400 });
  expect(windowAround(span, [0, 1000])).toEqual([40, 460]);
  expect(windowAround({ from: 500, to: 500 }, [0, 1000])).toEqual([480, 520]);
});
