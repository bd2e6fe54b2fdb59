/**
 * A policy learns from rewards alone, with every update as one program and its exact KL on show.
 *
 * The task is a contextual bandit: a point in the plane is drawn, the policy names its quadrant, a right answer pays 1.
 */
import {
  add,
  clip,
  compile,
  exp,
  Graph,
  gather,
  grad,
  lessEqual,
  loop,
  min,
  mul,
  reduceMean,
  sub,
} from '../src/engine/index.ts';
import { categorical } from '../src/kl/index.ts';
import { adam, adamCorrections, clipScale, correctionsAt, mlp, parameters } from '../src/nn/index.ts';
import { Rng } from '../src/random/index.ts';

const [samples, batch, epochs, actions] = [1024, 128, 4, 4];
const steps = (samples / batch) * epochs;
const klLimit = 0.02;

const net = mlp({ name: 'policy', sizes: [2, 32, actions], outputGain: 0.01 });
const layout = parameters(net.specs);
const policy = categorical(actions);

// One graph to act with.
const acting = new Graph();
const weights = acting.input('params', [layout.size]);
acting.output('logits', net.forward(layout.tensors(weights), acting.input('contexts', [samples, 2])));

// One graph that learns: all epochs and minibatches, stopping when the policy has moved far enough.
const learning = new Graph();
const data = {
  contexts: learning.input('contexts', [samples, 2]),
  actions: learning.input('actions', [samples, 1]),
  oldLogits: learning.input('oldLogits', [samples, actions]),
  advantages: learning.input('advantages', [samples, 1]),
};
const order = learning.input('order', [steps, batch], 'int64');
const step = add(
  learning.input('stepsDone', []),
  learning.constant(Float64Array.from({ length: steps }, (_, i) => i + 1)),
);
const corrections = adamCorrections(step);
const [params, m, v] = ['params', 'm', 'v'].map(name => learning.input(name, [layout.size]));
const learnt = loop({
  trips: steps,
  carry: { params, m, v },
  body({ iteration, carry }) {
    const rows = gather(order, iteration);
    const [x, action, oldLogits, advantage] = Object.values(data).map(t => gather(t, rows));
    const logits = net.forward(layout.tensors(carry.params), x);
    const ratio = exp(sub(policy.graph.logProb(logits, action), policy.graph.logProb(oldLogits, action)));
    const gain = reduceMean(min(mul(ratio, advantage), mul(clip(ratio, 0.8, 1.2), advantage)));
    const kl = reduceMean(policy.graph.kl(oldLogits, logits));
    const goOn = lessEqual(kl, klLimit);
    const [gradient] = grad(mul(gain, -1), [carry.params]);
    const { scale } = clipScale(gradient, 0.5);
    const next = adam(carry, {
      gradient,
      gradientScale: scale,
      learningRate: 3e-3,
      corrections: correctionsAt(corrections, iteration),
      apply: goOn,
    });
    return { carry: { ...next }, goOn };
  },
});
for (const [name, tensor] of Object.entries(learnt.carry)) learning.output(`new ${name}`, tensor);
learning.output('iterations', learnt.iterations);

const [act, learn] = await Promise.all([compile(acting), compile(learning)]);
const [initRng, worldRng, actRng, orderRng] = new Rng(1).split(4);
let state = {
  params: layout.initialise(initRng),
  m: new Float32Array(layout.size),
  v: new Float32Array(layout.size),
};
const contexts = new Float32Array(samples * 2);
const chosen = new Float32Array(samples);
const noise = new Float32Array(samples);
const row = (array: Float32Array, i: number): Float32Array => array.subarray(i * actions, (i + 1) * actions);

console.log('update   reward   kl/step  minibatches');
let stepsDone = 0;
for (let update = 1; update <= 40; update++) {
  worldRng.fillNormal(contexts);
  policy.fillNoise(actRng, noise);
  const { logits } = act.run<{ logits: Float32Array }>({ params: state.params, contexts });
  const rewards = Float32Array.from(chosen, (_, i) => {
    policy.sample(row(logits, i), noise.subarray(i, i + 1), chosen.subarray(i, i + 1));
    return chosen[i] === (contexts[2 * i] > 0 ? 1 : 0) + (contexts[2 * i + 1] > 0 ? 2 : 0) ? 1 : 0;
  });
  const mean = rewards.reduce((a, b) => a + b) / samples;
  const shuffled = Array.from({ length: epochs }, () => [...orderRng.permutation(samples)]).flat();
  const out = learn.run({
    ...state,
    contexts,
    actions: chosen,
    oldLogits: logits,
    advantages: rewards.map(r => r - mean),
    order: BigInt64Array.from(shuffled, BigInt),
    stepsDone: Float32Array.of(stepsDone),
  });
  stepsDone += Number(out.iterations[0]);
  state = { params: out['new params'], m: out['new m'], v: out['new v'] } as typeof state;
  const after = act.run<{ logits: Float32Array }>({ params: state.params, contexts }).logits;
  let kl = 0;
  for (let i = 0; i < samples; i++) kl += policy.kl(row(logits, i), row(after, i)) / samples;
  console.log(
    `${String(update).padStart(6)}   ${mean.toFixed(3)}    ${kl.toFixed(5)}  ${out.iterations[0]}/${steps}`,
  );
}
