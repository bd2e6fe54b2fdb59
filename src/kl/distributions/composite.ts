import type { Tensor } from '../../engine/graph.ts';
import { add } from '../../engine/ops/elementwise.ts';
import { concat, split } from '../../engine/ops/shape.ts';
import { checkBatch, checkLength, checkNoiseRows } from './checks.ts';
import type { Distribution, Vector } from './distribution.ts';

/** A part with its place in the composite's rows, and room for one of its rows. */
interface Part {
  readonly dist: Distribution;
  readonly paramStart: number;
  readonly actionStart: number;
  readonly noiseStart: number;
  // Rows are copied out, because any ArrayLike is welcome and only typed arrays have `subarray`. Float64 holds every
  // float32 exactly. Functions here never wait, so one copy is enough.
  readonly p: Float64Array;
  readonly q: Float64Array;
  readonly action: Float64Array;
  readonly noise: Float64Array;
}

/** Copies a piece of a row. */
function take(row: Vector, start: number, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i++) into[i] = row[start + i];
  return into;
}

/**
 * Independent parts in one action: a move and a shot, a category and a force. Parameters, action and noise are those of the
 * parts, one after the other; logProb, entropy and KL are their sums.
 */
export function composite(dists: readonly Distribution[]): Distribution {
  if (dists.length === 0) {
    throw new RangeError(
      'composite([]) has 0 parts, at least 1 is needed: try composite([categorical(3), gaussian(1)])',
    );
  }
  const name = `composite([${dists.map(dist => dist.name).join(', ')}])`;
  const total = (sizeOf: (dist: Distribution) => number, end = dists.length): number =>
    dists.slice(0, end).reduce((sum, dist) => sum + sizeOf(dist), 0);
  const parts: Part[] = dists.map((dist, i) => ({
    dist,
    paramStart: total(d => d.paramSize, i),
    actionStart: total(d => d.actionSize, i),
    noiseStart: total(d => d.noiseSize, i),
    p: new Float64Array(dist.paramSize),
    q: new Float64Array(dist.paramSize),
    action: new Float64Array(dist.actionSize),
    noise: new Float64Array(dist.noiseSize),
  }));
  const paramSize = total(dist => dist.paramSize);
  const actionSize = total(dist => dist.actionSize);
  const noiseSize = total(dist => dist.noiseSize);

  const splitParams = (t: Tensor) =>
    split(
      t,
      dists.map(dist => dist.paramSize),
      -1,
    );
  const splitActions = (t: Tensor) =>
    split(
      t,
      dists.map(dist => dist.actionSize),
      -1,
    );
  const splitNoise = (t: Tensor) =>
    split(
      t,
      dists.map(dist => dist.noiseSize),
      -1,
    );
  const sum = (terms: readonly Tensor[]): Tensor => terms.reduce((a, b) => add(a, b));

  return {
    kind: 'composite',
    name,
    paramSize,
    actionSize,
    noiseSize,
    maxEntropy: total(dist => dist.maxEntropy),

    fillNoise(rng, out) {
      checkNoiseRows(name, out, noiseSize);
      for (let row = 0; row < out.length; row += noiseSize) {
        for (const { dist, noiseStart } of parts) {
          const start = row + noiseStart;
          dist.fillNoise(rng, out.subarray(start, start + dist.noiseSize));
        }
      }
    },

    sample(params, noise, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'noise', noise, noiseSize);
      checkLength(name, 'out', out, actionSize);
      for (const part of parts) {
        part.dist.sample(
          take(params, part.paramStart, part.p),
          take(noise, part.noiseStart, part.noise),
          part.action,
        );
        for (let i = 0; i < part.action.length; i++) out[part.actionStart + i] = part.action[i];
      }
    },

    mode(params, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'out', out, actionSize);
      for (const part of parts) {
        part.dist.mode(take(params, part.paramStart, part.p), part.action);
        for (let i = 0; i < part.action.length; i++) out[part.actionStart + i] = part.action[i];
      }
    },

    logProb(params, action) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'action', action, actionSize);
      let logProb = 0;
      for (const part of parts) {
        logProb += part.dist.logProb(
          take(params, part.paramStart, part.p),
          take(action, part.actionStart, part.action),
        );
      }
      return logProb;
    },

    entropy(params) {
      checkLength(name, 'params', params, paramSize);
      let entropy = 0;
      for (const part of parts) entropy += part.dist.entropy(take(params, part.paramStart, part.p));
      return entropy;
    },

    kl(p, q) {
      checkLength(name, 'p', p, paramSize);
      checkLength(name, 'q', q, paramSize);
      let kl = 0;
      for (const part of parts) {
        kl += part.dist.kl(take(p, part.paramStart, part.p), take(q, part.paramStart, part.q));
      }
      return kl;
    },

    graph: {
      sample(params, noise) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'noise', noise, noiseSize, params);
        const ps = splitParams(params);
        const ns = splitNoise(noise);
        return concat(
          dists.map((dist, i) => dist.graph.sample(ps[i], ns[i])),
          -1,
        );
      },

      mode(params) {
        checkBatch(name, 'params', params, paramSize);
        const ps = splitParams(params);
        return concat(
          dists.map((dist, i) => dist.graph.mode(ps[i])),
          -1,
        );
      },

      logProb(params, action) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'action', action, actionSize, params);
        const ps = splitParams(params);
        const as = splitActions(action);
        return sum(dists.map((dist, i) => dist.graph.logProb(ps[i], as[i])));
      },

      entropy(params) {
        checkBatch(name, 'params', params, paramSize);
        const ps = splitParams(params);
        return sum(dists.map((dist, i) => dist.graph.entropy(ps[i])));
      },

      kl(p, q) {
        checkBatch(name, 'p', p, paramSize);
        checkBatch(name, 'q', q, paramSize, p);
        const ps = splitParams(p);
        const qs = splitParams(q);
        return sum(dists.map((dist, i) => dist.graph.kl(ps[i], qs[i])));
      },
    },
  };
}
