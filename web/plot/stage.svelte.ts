/** What all plots of a page share: the axis, the zoom, the cursor and the looks. Kept in the address. */
import { getContext, setContext } from 'svelte';
import type { XAxis } from '../../src/server/api.ts';
import { isLog, toggleLog } from '../lib/view-state.ts';
import { viewState } from '../state/view.svelte.ts';

export interface Stage {
  readonly axis: XAxis;
  /** Where time is counted from. */
  readonly origin: number;
  /** What the x axis shows. */
  readonly range: readonly [number, number];
  /** From the first to the last point of all. */
  readonly whole: readonly [number, number];
  readonly zoomed: boolean;
  readonly smooth: number;
  /** `usual` is what the plot would be if nobody chose. */
  isLog(metric: string, usual: boolean): boolean;
  toggleLog(metric: string, usual: boolean): void;
  toggleAllLog(): void;
  /** Where the pointer or the arrow keys are, in all plots. */
  cursor: number | null;
  zoomTo(from: number, to: number): void;
  reset(): void;
  /** By a share of the window; positive is later. */
  pan(share: number): void;
  /** Around the cursor, or the middle. */
  scale(factor: number): void;
  setExtent(extent: readonly [number, number] | null): void;
}

export function createStage(): Stage {
  let extent = $state.raw<readonly [number, number] | null>(null);
  let cursor = $state<number | null>(null);
  const plot = $derived(viewState.view.plot);
  const full = $derived<readonly [number, number]>(
    extent === null ? [0, 1] : extent[0] === extent[1] ? [extent[0] - 0.5, extent[1] + 0.5] : extent,
  );
  const range = $derived<readonly [number, number]>(
    plot.from !== null && plot.to !== null ? [plot.from, plot.to] : full,
  );

  /** Never narrower than can be told apart, never further out than the data and a window. */
  function zoomTo(from: number, to: number): void {
    const [a, b] = full;
    const width = Math.max(to - from, (b - a) * 1e-6, 1e-9);
    if (width >= (b - a) * 1.2) {
      reset();
      return;
    }
    const start = Math.min(Math.max(from, a - width / 2), b - width / 2);
    viewState.plot({ from: start, to: start + width });
  }
  function reset(): void {
    viewState.plot({ from: null, to: null });
  }

  return {
    get axis() {
      return plot.x;
    },
    get origin() {
      return extent?.[0] ?? 0;
    },
    get range() {
      return range;
    },
    get whole() {
      return full;
    },
    get zoomed() {
      return plot.from !== null;
    },
    get smooth() {
      return plot.smooth;
    },
    isLog: (metric, usual) => isLog(plot, metric, usual),
    toggleLog: (metric, usual) => viewState.plot(toggleLog(plot, metric, usual)),
    toggleAllLog() {
      viewState.plot({ log: !plot.log, logBut: [], linear: [] });
    },
    get cursor() {
      return cursor;
    },
    set cursor(x) {
      cursor = x;
    },
    zoomTo,
    reset,
    pan(share) {
      const shift = (range[1] - range[0]) * share;
      if (plot.from !== null) zoomTo(range[0] + shift, range[1] + shift);
    },
    scale(factor) {
      const [a, b] = range;
      const at = cursor !== null && cursor >= a && cursor <= b ? cursor : (a + b) / 2;
      zoomTo(at - (at - a) * factor, at + (b - at) * factor);
    },
    setExtent(next) {
      if (next?.[0] !== extent?.[0] || next?.[1] !== extent?.[1]) extent = next;
    },
  };
}

const key = Symbol('stage');
export const provideStage = (stage: Stage): Stage => setContext(key, stage);
export const useStage = (): Stage => getContext<Stage>(key);
