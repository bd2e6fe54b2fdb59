/**
 * Gradients of a completion as the trainers have them: GRPO's loss over the logits of a table, and PPO's own program, whose
 * gradient is what Adam's first moment gets.
 */
import type { ActorCritic } from '../../src/algos/agents/networks/actor-critic.ts';
import { tokenLoss } from '../../src/algos/grpo/graphs.ts';
import { isExact, type RefKl } from '../../src/algos/grpo/reference-kl.ts';
import { compilePpo, learn } from '../../src/algos/ppo/programs.ts';
import { type PpoSettings, ppoSettings } from '../../src/algos/ppo/settings.ts';
import { newState, outputAll } from '../../src/algos/update/state.ts';
import { compile, Graph, gather, grad, logSoftmax, matmul, takeAlong } from '../../src/engine/index.ts';
import { entropyFromLogProbs } from '../../src/kl/distributions/categorical.ts';
import { categorical } from '../../src/kl/index.ts';
import { flat } from '../../src/lm/scorer.ts';
import { parameters } from '../../src/nn/index.ts';
import { resolveSettings } from '../../src/settings/resolve.ts';
import {
  CONTEXTS,
  completions,
  logProbsOf,
  MOST_TOKENS,
  SIZE,
  type Table,
  type Tables,
  VOCABULARY,
} from './task.ts';

/** The gradient of each completion's loss, which is the sum over its tokens. */
export type Gradients = readonly Float64Array[];

/** GRPO's program over some completions at once: their rows, and the sum of their gradients. */
export interface GrpoGradient {
  /** `weights` are those of the completions' tokens. */
  run(chosen: readonly number[], weights: ArrayLike<number>, sampler: Table): Float64Array;
  dispose(): void;
}

/** Compiles GRPO's loss, with a KL to the reference of weight 1 and no rewards, for so many completions at once. */
export async function grpoGradient(
  refKl: Exclude<RefKl, 'none'>,
  { policy, reference }: Tables,
  rows: number,
): Promise<GrpoGradient> {
  const g = new Graph();
  const size = rows * MOST_TOKENS;
  const table = g.input('table', [CONTEXTS, VOCABULARY]);
  const all = logSoftmax(gather(table, g.input('contexts', [size], 'int64')));
  const taken = flat(takeAlong(all, g.input('targets', [size, 1], 'int64'), 1));
  const { loss, info } = tokenLoss({ all, taken, entropy: flat(entropyFromLogProbs(all)) }, MOST_TOKENS, {
    refKl,
    entropy: false,
  });
  const [gradient] = grad(loss, [table]);
  outputAll(g, { gradient, loss, ...info });
  const program = await compile(g);
  const ofReference = logProbsOf(reference);
  return {
    run(chosen, weights, sampler) {
      const old = logProbsOf(sampler);
      const column = () => new Float32Array(size);
      const feeds = {
        ...{ weights: column(), mask: column(), oldLogProbs: column() },
        reference: new Float32Array(isExact(refKl) ? size * VOCABULARY : size),
      };
      const [contexts, targets] = [new BigInt64Array(size), new BigInt64Array(size)];
      chosen.forEach((index, row) => {
        const completion = completions[index];
        completion.tokens.forEach((token, i) => {
          const [at, context] = [row * MOST_TOKENS + i, completion.contexts[i]];
          const from = context * VOCABULARY;
          contexts[at] = BigInt(context);
          targets[at] = BigInt(token);
          feeds.weights[at] = weights[row];
          feeds.mask[at] = 1;
          feeds.oldLogProbs[at] = old[from + token];
          if (isExact(refKl))
            feeds.reference.set(ofReference.subarray(from, from + VOCABULARY), at * VOCABULARY);
          else feeds.reference[at] = ofReference[from + token];
        });
      });
      const scalars = { klRefCoef: 1, clipLow: 0.2, clipHigh: 0.2 };
      const out = program.run<Record<string, Float32Array>>({
        ...{ table: policy, contexts, targets, advantages: column(), ...feeds },
        ...Object.fromEntries(Object.entries(scalars).map(([name, value]) => [name, Float32Array.of(value)])),
      });
      return Float64Array.from(out.gradient);
    },
    dispose: () => program.dispose(),
  };
}

/** The gradient of each completion, drawn from the sampler, by itself. */
export async function grpoGradients(
  refKl: Exclude<RefKl, 'none'>,
  tables: Tables,
  sampler: Table,
): Promise<Gradients> {
  const program = await grpoGradient(refKl, tables, 1);
  const gradients = completions.map((_, i) => program.run([i], [1], sampler));
  program.dispose();
  return gradients;
}

/** A table as PPO's network: observations are contexts, one of 13 numbers being 1. */
function tabularActor(): ActorCritic {
  const init = () => {};
  return {
    layout: parameters([
      { name: 'actor.table', shape: [CONTEXTS, VOCABULARY], init, group: 'actor' },
      { name: 'critic.table', shape: [CONTEXTS, 1], init, group: 'critic' },
    ]),
    distribution: categorical(VOCABULARY),
    observationSize: CONTEXTS,
    valueHead: 'critic',
    policy: (weights, obs) => matmul(obs, weights['actor.table']),
    value: (weights, obs) => matmul(obs, weights['critic.table']),
  };
}

/** What the share of a gradient in Adam's first moment is. */
const ADAM_SHARE = 0.1;

/** PPO's gradient of each completion, one token a minibatch, with nothing but a KL penalty of weight 1 in the loss. */
export async function ppoGradients(
  penalty: 'klCoef' | 'reference',
  { policy, reference }: Tables,
  old: Table,
): Promise<Gradients> {
  const settings: PpoSettings =
    penalty === 'klCoef'
      ? { klCoef: 1 }
      : { reference: 'frozen', klRefCoefInitial: 1, klRefCoefFinal: 1, klRefDecaySteps: 0 };
  const config = resolveSettings(ppoSettings, {
    preset: { ...settings, epochs: 1, gradientClip: null, guard: null, normaliseAdvantages: false },
  });
  const model = tabularActor();
  const programs = await compilePpo(model, config, { samples: 1, minibatches: 1 });
  const flatOf = (table: Table): Float32Array => {
    const flat = new Float32Array(model.layout.size);
    flat.set(table);
    return flat;
  };
  const knobs = { actorRate: 0, criticRate: 0, clipRange: 0.2, klCoef: 1, guard: Infinity, stepsDone: 0 };
  const ofContext = Array.from({ length: CONTEXTS }, (_, context) => {
    const observations = new Float32Array(CONTEXTS);
    observations[context] = 1;
    const [from, to] = [context * VOCABULARY, (context + 1) * VOCABULARY];
    const zero = new Float32Array(1);
    const { state } = learn(
      programs,
      {
        observations,
        actions: zero,
        oldParams: old.slice(from, to),
        oldLogProbs: Float32Array.of(logProbsOf(old)[from]),
        ...{ oldValues: zero, advantages: zero, returns: zero },
      },
      newState(flatOf(policy)),
      Int32Array.of(0),
      { ...knobs, klLimit: Number.POSITIVE_INFINITY },
      flatOf(reference),
    );
    return Float64Array.from(state.m.subarray(0, SIZE), value => value / ADAM_SHARE);
  });
  programs.dispose();
  return completions.map(({ contexts }) => {
    const sum = new Float64Array(SIZE);
    for (const context of contexts)
      ofContext[context].forEach((value, i) => {
        sum[i] += value;
      });
    return sum;
  });
}
