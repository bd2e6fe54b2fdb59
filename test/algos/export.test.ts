/** The exported policy against the trainer's own, in plain onnxruntime. */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { policyGraph } from '../../src/algos/export.ts';
import { createPpoTrainer } from '../../src/algos/index.ts';
import { ppoSchema } from '../../src/algos/ppo-config.ts';
import { compile, Graph, toOnnx } from '../../src/engine/index.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { Rng } from '../../src/random/index.ts';

const ort = createRequire(import.meta.url)('onnxruntime-node') as typeof import('onnxruntime-node');

describe('policyGraph', () => {
  it.each(['CartPole-v1', 'Pendulum-v1', 'Courier-v0'])(
    'of %s acts as the trainer does, to 1e-6',
    async env => {
      const envs = await makeVectorEnv(env, { envCount: 2 });
      const config = ppoSchema.parse({
        stepsPerRollout: 64,
        minibatchSize: 32,
        epochs: 2,
        normaliseObservations: true,
      });
      const trainer = await createPpoTrainer({ envs, config, seed: 3, totalSteps: 1000 });
      await trainer.start();
      await trainer.iterate();
      await trainer.iterate();
      const { model, params, observationNormaliser } = trainer;
      const session = await ort.InferenceSession.create(
        toOnnx(policyGraph(model, params, envs.actionSpace, observationNormaliser)).bytes,
      );

      // What the trainer does itself: normalise, evaluate, take the mode, hold it in its bounds.
      const g = new Graph();
      const seen = g.input('seen', [1, model.observationSize]);
      g.output('policy', model.policy(model.layout.tensors(g.constant(params)), seen));
      const program = await compile(g);
      const rng = new Rng(1);
      for (let round = 0; round < 50; round++) {
        // Far out as well, where the normaliser clips and actions meet their bounds.
        const raw = Float32Array.from(
          { length: model.observationSize },
          () => rng.normal() * (round < 40 ? 1 : 100),
        );
        const normalised = new Float32Array(raw.length);
        observationNormaliser!.apply(raw, normalised);
        const { policy } = program.run<{ policy: Float32Array }>({ seen: normalised });
        const action = new Float32Array(model.distribution.actionSize);
        model.distribution.mode(policy, action);
        envs.actionSpace.clip(action);
        const out = await session.run({ observation: new ort.Tensor('float32', raw, [1, raw.length]) });
        const close = (name: string, wanted: Float32Array): void => {
          (out[name].data as Float32Array).forEach((value, i) => {
            expect(Math.abs(value - wanted[i]), `${name} ${i}`).toBeLessThan(
              1e-6 * Math.max(1, Math.abs(wanted[i])) * 4,
            );
          });
        };
        close('distribution', policy);
        close('action', action);
      }
      program.dispose();
      trainer.dispose();
      await envs.close();
    },
  );
});
