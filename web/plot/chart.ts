/** One canvas plot: uPlot with what Keel draws around the curves. It knows nothing of Svelte. */
import uPlot from 'uplot';
import type { XAxis } from '../../src/server/api.ts';
import { formatTicks, timeTicks } from '../lib/axis.ts';
import { lowerBound, upperBound } from '../lib/envelope.ts';
import { formatTick } from '../lib/format.ts';
import { groupPins, type Pin, type PinGroup } from '../lib/pins.ts';
import { aboveFloor, type Curve, paddedRange, rangeOf } from '../lib/plot-data.ts';
import { decades } from '../lib/ticks.ts';
import { type Colors, fade } from './colors.ts';
import {
  type Area,
  drawBroken,
  drawLevels,
  drawMarks,
  drawPins,
  drawStretches,
  drawTints,
  type Level,
  pinStrip,
  type Stretch,
  type Tint,
  type Trace,
} from './draw.ts';
import { drawEnds, drawPeaks } from './draw-extremes.ts';

export interface ChartModel {
  readonly curves: readonly Curve[];
  readonly smoothed: boolean;
  readonly log: boolean;
  readonly axis: XAxis;
  readonly origin: number;
  readonly range: readonly [number, number];
  readonly tints: readonly Tint[];
  readonly marks: readonly number[];
  readonly include: readonly number[];
  /** Whether a bucket's largest value is to be seen beside its mean, however near it is; null where nothing says so. */
  readonly isPeak: ((mean: number, max: number) => boolean) | null;
  readonly levels: readonly Level[];
  readonly stretches: readonly Stretch[];
  readonly pins: readonly Pin[];
  /** Whether the plot has a strip for pins at its bottom, with or without some in it. */
  readonly strip: boolean;
  readonly colors: Colors;
}

export interface ChartEvents {
  /** The pointer is at this x; null when it left. */
  readonly onCursor: (x: number | null) => void;
  readonly onZoom: (from: number, to: number) => void;
}

export interface Chart {
  update(model: ChartModel): void;
  setRange(range: readonly [number, number]): void;
  setCursor(x: number | null): void;
  resize(width: number, height: number): void;
  /** Where the pins were drawn. */
  groups(): readonly PinGroup[];
  /** The ends of the value axis as drawn. */
  valueRange(): [number, number];
  readonly over: HTMLElement;
  toX(left: number): number;
  canvas(): HTMLCanvasElement;
  destroy(): void;
}

const parts = 4;
const pinGap = 15;
/** Pixels that a point takes of the width. */
const pointRoom = 10;

export function createChart(host: HTMLElement, first: ChartModel, events: ChartEvents): Chart {
  let model = first;
  let width = Math.max(50, host.clientWidth);
  let height = Math.max(50, host.clientHeight);
  let groups: PinGroup[] = [];
  let quiet = false;

  function area(u: uPlot): Area {
    const { left, top, width, height } = u.bbox;
    return {
      ctx: u.ctx,
      left,
      top,
      width,
      height,
      ratio: devicePixelRatio,
      x: value => u.valToPos(value, 'x', true),
      y: value => u.valToPos(value, 'y', true),
      colors: model.colors,
    };
  }

  function traces(a: Area): Trace[] {
    const [from, to] = model.range;
    return model.curves.map(({ x, low, high }) =>
      x.flatMap((at, i) => {
        const [bottom, top] = [low[i], high[i]];
        if (at < from || at > to || bottom == null || top == null) return [];
        return [[a.x(at), a.y(top), a.y(bottom)] as const];
      }),
    );
  }

  function build(): uPlot {
    const { log } = model;
    const stroke = () => model.colors.faint;
    const grid = { stroke: () => model.colors.grid, width: 1 };
    const font = '11px system-ui, sans-serif';
    const built = new uPlot(
      {
        width,
        height,
        padding: [6, 16, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false, dist: 5 },
          points: {
            show: (_u, i) => (i % parts === 0 ? dot(curveColor(i)) : (null as unknown as HTMLElement)),
          },
          bind: { dblclick: () => () => null },
        },
        scales: {
          x: {
            time: false,
            auto: false,
            min: model.range[0],
            max: model.range[1],
            range: (_u, min, max) => [min, max],
          },
          y: {
            ...(log ? { distr: 3 as const, log: 10 as const } : {}),
            range: (_u, _min, _max) => valueRange(),
          },
        },
        axes: [
          {
            stroke,
            grid: { show: false },
            ticks: { ...grid, size: 4 },
            font,
            size: 26,
            gap: 3,
            space: 64,
            ...(model.axis === 'time'
              ? {
                  splits: (u: uPlot) =>
                    timeTicks(
                      u.scales.x.min!,
                      u.scales.x.max!,
                      model.origin,
                      u.bbox.width / devicePixelRatio,
                    ),
                }
              : {}),
            values: (_u, splits) => formatTicks(model.axis, splits, model.origin),
          },
          {
            stroke,
            grid,
            ticks: { show: false },
            font,
            // As wide as its longest label, and seldom another width than its neighbours'.
            size: (_u, values) =>
              Math.max(50, 12 + 6.2 * Math.max(0, ...(values ?? []).map(({ length }) => length))),
            gap: 6,
            space: 28,
            ...(log
              ? {
                  splits: (u: uPlot) => decades(u.scales.y.min!, u.scales.y.max!),
                  filter: (_u: uPlot, s: number[]) => s,
                }
              : {}),
            values: (_u, splits) =>
              splits.map((v, i) =>
                formatTick(v, log ? v : Math.abs((splits[i + 1] ?? splits[i - 1] ?? v) - v)),
              ),
          },
        ],
        series: [{}, ...model.curves.flatMap((_, i) => curveSeries(i))],
        bands: model.curves.map((_, i) => ({
          series: [i * parts + 2, i * parts + 1] as [number, number],
          fill: () => fade(lineColor(i), 0.16),
        })),
        hooks: {
          drawClear: [
            u => {
              const [low, high] = [u.scales.y.min!, u.scales.y.max!];
              drawTints(area(u), model.tints, low, high, model.tints.length === 0 ? [] : traces(area(u)));
              drawStretches(area(u), model.stretches);
              drawMarks(area(u), model.marks, low, high);
            },
          ],
          draw: [
            u => {
              const [low, high] = [u.scales.y.min!, u.scales.y.max!];
              const a = area(u);
              const [from, to] = model.range;
              model.curves.forEach((curve, i) => {
                drawPeaks(a, curve, [from, to], lineColor(i), model.isPeak);
                drawEnds(a, curve.ends, lineColor(i));
              });
              drawLevels(a, model.levels, low, high, model.levels.length === 0 ? [] : traces(a));
              for (const curve of model.curves) drawBroken(a, curve.broken);
              groups = groupPins(
                model.pins,
                x => u.valToPos(x, 'x'),
                u.bbox.width / devicePixelRatio,
                pinGap,
              );
              drawPins(a, groups);
            },
          ],
          setCursor: [
            u => {
              if (quiet) return;
              const { left } = u.cursor;
              events.onCursor(left === undefined || left === null || left < 0 ? null : u.posToVal(left, 'x'));
            },
          ],
          setSelect: [
            u => {
              if (u.select.width < 4) return;
              const from = u.posToVal(u.select.left, 'x');
              const to = u.posToVal(u.select.left + u.select.width, 'x');
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              events.onZoom(from, to);
            },
          ],
        },
      },
      dataOf(model),
      host,
    );
    return built;
  }

  const lineColor = (i: number) =>
    model.colors.lines[(model.curves[i]?.color ?? 0) % model.colors.lines.length];
  const curveColor = (seriesIndex: number) => lineColor(Math.floor((seriesIndex - 1) / parts));

  /** Whether a curve's own points have room: where curves share a plot, those of another say nothing of it. */
  function isSparse(u: uPlot, i: number): boolean {
    const { x } = model.curves[i] ?? { x: [] };
    const [from, to] = model.range;
    const inside = upperBound(x, to) - lowerBound(x, from);
    return inside * pointRoom <= u.bbox.width / devicePixelRatio;
  }

  function curveSeries(i: number): uPlot.Series[] {
    const edge: uPlot.Series = { width: 0, points: { show: false } };
    const dashed = (model.curves[i]?.color ?? 0) >= model.colors.lines.length ? { dash: [6, 3] } : {};
    return [
      edge,
      edge,
      {
        show: model.smoothed,
        width: 1,
        stroke: () => fade(lineColor(i), 0.32),
        points: { show: false },
      },
      { width: 1.6, stroke: () => lineColor(i), points: { size: 5, show: u => isSparse(u, i) }, ...dashed },
    ];
  }

  function valueRange(): [number, number] {
    const [from, to] = model.range;
    const range = rangeOf(model.curves, from, to);
    // A level is worth seeing if the values come near it; far above them it would flatten the curve.
    const near = model.levels
      .map(l => l.value)
      .filter(v => range === null || (v <= range[1] * 1.7 && v >= range[0] * 0.2));
    // The strip that pins lie in is kept free, with and without them, so that nothing moves when the first one comes.
    const strip = model.strip ? Math.min(0.2, pinStrip / Math.max(60, height - 32)) : 0;
    return paddedRange(
      model.log ? aboveFloor(range, model.tints) : range,
      model.log,
      [...near, ...model.include],
      strip,
    );
  }

  const shapeOf = (m: ChartModel) =>
    `${m.log}|${m.axis === 'time'}|${m.smoothed}|${m.curves.map(c => c.color).join()}`;

  let plot = build();
  return {
    update(next) {
      const rebuild = shapeOf(next) !== shapeOf(model);
      model = next;
      if (rebuild) {
        plot.destroy();
        plot = build();
        return;
      }
      plot.batch(() => {
        plot.setData(dataOf(model), false);
        plot.setScale('x', { min: model.range[0], max: model.range[1] });
      });
    },
    setRange(range) {
      if (range[0] === model.range[0] && range[1] === model.range[1]) return;
      model = { ...model, range };
      // In a batch it is drawn at once and not later: only so can the queue of frames measure it.
      plot.batch(() => plot.setScale('x', { min: range[0], max: range[1] }));
    },
    setCursor(x) {
      quiet = true;
      const left = x === null ? -10 : plot.valToPos(x, 'x');
      plot.setCursor(
        {
          left: left >= 0 && left <= plot.bbox.width / devicePixelRatio ? left : -10,
          top: left < 0 ? -10 : 1,
        },
        false,
      );
      quiet = false;
    },
    resize(w, h) {
      if (w === width && h === height) return;
      width = w;
      height = h;
      plot.setSize({ width, height });
    },
    groups: () => groups,
    valueRange,
    get over() {
      return plot.over;
    },
    toX: left => plot.posToVal(left, 'x'),
    canvas: () => plot.ctx.canvas,
    destroy: () => plot.destroy(),
  };
}

function dot(color: string): HTMLElement {
  const element = document.createElement('div');
  element.className = 'cursor-dot';
  element.style.background = color;
  return element;
}

/** Curves on one x: those of several runs are joined, where one has no point of its own it is drawn on. */
function dataOf({ curves }: ChartModel): uPlot.AlignedData {
  type Mutable = (number | null)[];
  const tables = curves.map(c => [c.x, c.low, c.high, c.raw, c.line] as unknown as [number[], ...Mutable[]]);
  if (tables.length === 0) return [[]];
  if (tables.length === 1) return tables[0] as uPlot.AlignedData;
  return uPlot.join(tables as uPlot.AlignedData[]);
}
