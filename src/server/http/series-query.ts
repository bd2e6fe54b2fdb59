/** The series that a query asks for, over the stretch and in the buckets that it names. */
import type { Context } from 'hono';
import type { SeriesAnswer, XAxis } from '../api.ts';
import { Problem } from '../problem.ts';
import type { WatchedRun } from '../runs/run.ts';
import { type Edges, edgesOf, envelopeOf } from '../series/envelope.ts';
import { numberOf } from './query.ts';

const mostBuckets = 4000;
const mostMetrics = 500;
const axes: readonly XAxis[] = ['step', 'iteration', 'time'];

export function seriesOf(run: WatchedRun, c: Context): SeriesAnswer {
  const axis = (c.req.query('x') ?? 'step') as XAxis;
  if (!axes.includes(axis))
    throw new Problem(
      400,
      'unknown-axis',
      `x is ${JSON.stringify(String(axis).slice(0, 40))}: use ${axes.join(', ')}`,
    );
  const [wantedFrom, wantedTo] = [numberOf(c, 'from'), numberOf(c, 'to')];
  const buckets = Math.max(1, Math.min(mostBuckets, Math.round(numberOf(c, 'buckets') ?? 600)));
  const all = run.tracks();
  const names = c.req.query('metrics');
  const wanted = names === undefined || names === '' ? [...all.keys()] : namesIn(names);
  if (wanted.length > mostMetrics)
    throw new Problem(400, 'too-many', `${wanted.length} metrics at once: at most ${mostMetrics}`);
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const found = wanted.flatMap(name => {
    const track = all.get(name);
    const x = track?.x(axis);
    if (track === undefined || x === undefined || track.length === 0) return [];
    // Times may be unknown at the beginning.
    let begin = 0;
    while (begin < track.length && Number.isNaN(x[begin])) begin++;
    if (begin === track.length) return [];
    first = Math.min(first, x[begin]);
    last = Math.max(last, x[track.length - 1]);
    return [{ name, track, x }];
  });
  const from = wantedFrom ?? first;
  const to = wantedTo ?? last;
  const window = { from, to, buckets };
  // The series of a run of Keel share their axes.
  const edges = new Map<Float64Array, Edges>();
  const sharedEdges = (x: Float64Array, length: number): Edges => {
    let known = edges.get(x);
    if (known === undefined) {
      known = edgesOf(x, length, window);
      edges.set(x, known);
    }
    return known;
  };
  const empty = found.length === 0 || !(to >= from);
  return {
    x: axis,
    from: empty ? null : from,
    to: empty ? null : to,
    series: empty
      ? []
      : found.map(({ name, track, x }) =>
          envelopeOf(name, track.column, x, track.length, window, sharedEdges(x, track.length)),
        ),
    generation: run.generation,
    rows: run.rows,
  };
}

/** `a,b%2Cc` as sent: each name was encoded before they were joined; one that was not is taken as it is. */
function namesIn(text: string): string[] {
  return text.split(',').map(name => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  });
}
