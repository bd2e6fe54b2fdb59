/** The store of series: few requests, live rows without any, the right stretch after a zoom. */
import { describe, expect, test, vi } from 'vitest';
import type { SeriesAnswer } from '../../../src/server/api.ts';
import { seriesSource } from '../../../web/plot/source.ts';
import { type Ask, createSeriesStore } from '../../../web/state/series-store.ts';

function setup(points = 10) {
  const asks: Ask[] = [];
  const state = { points, generation: 1 };
  const fetchSeries = async (ask: Ask): Promise<SeriesAnswer> => {
    asks.push(ask);
    const xs = Array.from({ length: state.points }, (_, i) => (i + 1) * 10).filter(
      x => (ask.from === null || x >= ask.from) && (ask.to === null || x <= ask.to),
    );
    const values = xs.map(x => x / 10);
    const series = ask.metrics.map(metric => ({
      metric,
      x: xs,
      min: values,
      max: values,
      mean: values,
      count: xs.map(() => (ask.from === null ? 5 : 1)),
      broken: [],
    }));
    return { x: ask.x, from: ask.from, to: ask.to, series, generation: state.generation, rows: state.points };
  };
  const store = createSeriesStore(fetchSeries, task => queueMicrotask(task));
  return { store, asks, state };
}
const settle = () => new Promise(done => setTimeout(done, 5));
const row = (step: number, value: number | null) => ({
  'train/step': step,
  'train/iteration': step / 10,
  'time/unix_s': step,
  m: value,
});

describe('series store', () => {
  test('what is watched together is asked for together, once', async () => {
    const { store, asks } = setup();
    const told: string[] = [];
    for (const metric of ['a', 'b', 'c']) store.watch(metric, () => told.push(metric));
    await settle();
    expect(asks.map(ask => ask.metrics)).toEqual([['a', 'b', 'c']]);
    expect(told).toEqual(['a', 'b', 'c']);
    expect(store.extent()).toEqual([10, 100]);
    store.watch('a', () => {});
    await settle();
    expect(asks).toHaveLength(1);
  });
  test('many metrics are asked for in several requests', async () => {
    const { store, asks } = setup();
    for (let i = 0; i < 50; i++) store.watch(`m${i}`, () => {});
    await settle();
    expect(asks.flatMap(ask => ask.metrics)).toHaveLength(50);
    expect(Math.max(...asks.map(ask => ask.metrics.length))).toBeLessThanOrEqual(8);
  });
  test('live rows are added without asking; those that came before the answer too, and none twice', async () => {
    const { store, asks } = setup();
    const onChange = vi.fn();
    store.watch('m', onChange);
    store.append([row(100, 10), row(110, 11)], 1, false);
    await settle();
    expect(store.line('m')!.x.slice(-2)).toEqual([100, 110]);
    onChange.mockClear();
    store.append([row(110, 11), row(120, null)], 1, false);
    await settle();
    expect(store.line('m')!.x.slice(-3)).toEqual([100, 110, 120]);
    expect(store.line('m')!.broken).toEqual([{ x: 120, count: 1 }]);
    expect(onChange).toHaveBeenCalledTimes(1);
    expect(store.extent()).toEqual([10, 120]);
    expect(asks).toHaveLength(1);
  });
  test('rows that were left out, and hundreds of single ones, lead to a new answer', async () => {
    const { store, asks, state } = setup();
    store.watch('m', () => {});
    await settle();
    state.points = 60;
    store.append([row(600, 60)], 1, true);
    await settle();
    expect(asks).toHaveLength(2);
    expect(store.line('m')!.x).toHaveLength(60);
    state.points = 1000;
    for (let step = 61; step <= 400; step++) store.append([row(step * 10, step)], 1, false);
    await settle();
    expect(asks).toHaveLength(3);
  });
  test('a newer generation forgets what was there; rows of an older one are refused', async () => {
    const { store, asks, state } = setup();
    store.watch('m', () => {});
    await settle();
    state.points = 4;
    state.generation = 2;
    store.append([row(50, 5)], 2, false);
    await settle();
    expect(asks).toHaveLength(2);
    expect(store.line('m')!.x).toEqual([10, 20, 30, 40, 50]);
    store.append([row(900, 9)], 1, false);
    await settle();
    expect(store.line('m')!.x.at(-1)).toBe(50);
  });
  test('a zoom asks for its stretch with a margin, once, and the line has it', async () => {
    const { store, asks } = setup(100);
    store.watch('m', () => {});
    await settle();
    store.setZoom(300, 400);
    store.setZoom(310, 410);
    await new Promise(done => setTimeout(done, 200));
    expect(asks.slice(1)).toEqual([{ metrics: ['m'], x: 'step', from: 260, to: 460, buckets: 1200 }]);
    store.setZoom(330, 430);
    await new Promise(done => setTimeout(done, 200));
    expect(asks).toHaveLength(2);
    expect(store.line('m')!.count.filter(n => n === 1)).toHaveLength(21);
  });
  test('another axis asks again; the time of a row is in milliseconds', async () => {
    const { store, asks } = setup();
    store.watch('m', () => {});
    await settle();
    store.setAxis('time');
    await settle();
    expect(asks[1].x).toBe('time');
    store.append([row(7000, 1)], 1, false);
    expect(store.line('m')!.x.at(-1)).toBe(7_000_000);
  });
  test('a failure is told to who watches', async () => {
    const store = createSeriesStore(
      () => Promise.reject(new Error('no disk')),
      task => queueMicrotask(task),
    );
    const onChange = vi.fn();
    store.watch('m', onChange);
    await settle();
    expect(onChange).toHaveBeenCalled();
    expect(store.failure('m')).toBe('no disk');
    expect(store.line('m')).toBeNull();
  });
});

describe('a plot with another line beside its own', () => {
  const companion = { id: 'eval/return', label: 'evaluation' };

  test('has both, each with its own places, and hears of either', async () => {
    const { store } = setup();
    const onChange = vi.fn();
    const source = seriesSource(store, 'episode/return', 'Return', companion);
    const stop = source.watch(onChange);
    await settle();
    expect(source.lines()!.map(({ label, beside }) => [label, beside])).toEqual([
      ['Return', undefined],
      ['evaluation', true],
    ]);
    onChange.mockClear();
    // A row of an iteration that did not evaluate, and one that did.
    const at = (step: number) => ({ 'train/step': step, 'train/iteration': step, 'time/unix_s': step });
    store.append([{ ...at(110), 'episode/return': 5 }], 1, false);
    store.append([{ ...at(120), 'episode/return': 6, 'eval/return': 9 }], 1, false);
    await settle();
    expect(onChange).toHaveBeenCalled();
    expect(source.lines()!.map(({ line }) => line.x.filter(x => x > 100))).toEqual([[110, 120], [120]]);
    // No hole between two evaluations, or they would be dots without a line.
    expect(source.lines()![1].line.mean.includes(null)).toBe(false);
    stop();
    onChange.mockClear();
    store.append([{ ...at(130), 'eval/return': 9 }], 1, false);
    await settle();
    expect(onChange).not.toHaveBeenCalled();
  });

  test('has its own alone until there is something beside it', async () => {
    const { store } = setup(0);
    const source = seriesSource(store, 'episode/return', 'Return', companion);
    source.watch(() => {});
    await settle();
    expect(source.lines()).toHaveLength(1);
  });
});
