/** Saves a plot as a file. */
import { lineToCsv, plotToSvg } from '../lib/export.ts';
import { paddedRange, rangeOf } from '../lib/plot-data.ts';
import type { Chart, ChartModel } from './chart.ts';
import type { PlotInfo } from './plot-info.ts';
import type { NamedLine } from './source.ts';

/** Answers with what was done, as a sentence. */
export async function exportPlot(
  kind: 'png' | 'svg' | 'csv',
  info: PlotInfo,
  lines: readonly NamedLine[],
  model: ChartModel,
  chart: Chart | null,
): Promise<string> {
  const name = `${info.of}-${info.metric}`.replace(/[^\w.-]+/g, '-').slice(0, 100);
  if (lines.length === 0) return 'There is nothing to save yet.';
  const [from, to] = model.range;
  if (kind === 'csv') {
    const text = lines.map(
      l =>
        (lines.length > 1 ? `# ${l.label.replace(/[\r\n]/g, ' ')}\n` : '') +
        lineToCsv(info.metric, model.axis, l.line, from, to),
    );
    save(new Blob([text.join('')], { type: 'text/csv' }), `${name}.csv`);
  } else if (kind === 'svg') {
    const [low, high] = chart?.valueRange() ?? paddedRange(rangeOf(model.curves, from, to), model.log);
    const { paper, ink, grid, lines: strokes, tint } = model.colors;
    const svg = plotToSvg({
      title: `${info.title} · ${info.of}`,
      axis: model.axis,
      origin: model.origin,
      from,
      to,
      low,
      high,
      log: model.log,
      curves: model.curves,
      colors: { paper, ink, grid, lines: strokes },
      tints: model.tints.map(t => ({ ...t, color: tint[t.tone] })),
      levels: model.levels,
    });
    save(new Blob([svg], { type: 'image/svg+xml' }), `${name}.svg`);
  } else {
    if (chart === null) return 'The plot is not drawn yet.';
    const blob = await picture(chart.canvas(), `${info.title} · ${info.of}`, model.colors);
    if (blob === null) return 'The browser could not make the picture.';
    save(blob, `${name}.png`);
  }
  return `Saved ${name}.${kind}.`;
}

function picture(
  canvas: HTMLCanvasElement,
  title: string,
  colors: ChartModel['colors'],
): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const head = Math.round(34 * ratio);
  const out = document.createElement('canvas');
  out.width = canvas.width;
  out.height = canvas.height + head;
  const ctx = out.getContext('2d')!;
  ctx.fillStyle = colors.paper;
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.fillStyle = colors.ink;
  ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.fillText(title, 12 * ratio, head / 2, out.width - 24 * ratio);
  ctx.drawImage(canvas, 0, head);
  return new Promise(done => out.toBlob(done, 'image/png'));
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
