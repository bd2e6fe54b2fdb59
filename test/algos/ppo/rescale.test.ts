/** Another reward scale in mid-run: values follow, the policy does not move, and training goes on as it would have. */
import { describe, expect, it } from 'vitest';
import { createPpoTrainer, type PpoTrainer } from '../../../src/algos/ppo/iteration.ts';
import { rescaled } from '../../../src/algos/ppo/rescale.ts';
import { type PpoConfig, ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { makeVectorEnv } from '../../../src/envs/index.ts';
import { tiny } from './support/trainer.ts';

const settings = (changes: Partial<PpoConfig>): PpoConfig =>
  ppoSettings.schema.parse({ ...tiny, ...changes });

async function trainer(changes: Partial<PpoConfig>, rewardScale: number): Promise<PpoTrainer> {
  const envs = await makeVectorEnv('Pendulum-v1', { envCount: 4 });
  return createPpoTrainer({ envs, config: settings({ ...changes, seed: 3, steps: 10_000, rewardScale }) });
}

/** The rows after a checkpoint, with the rewards so much larger from there on. */
async function goOn(changes: Partial<PpoConfig>, factor: number) {
  const first = await trainer(changes, 1);
  await first.start();
  for (let i = 0; i < 3; i++) await first.iterate();
  const snapshot = rescaled(await first.snapshot(), first.model, factor);
  const next = await trainer(changes, factor);
  await next.restore(snapshot);
  return { row: (await next.iterate()).row };
}

describe('rescaled', () => {
  it.each([10, 0.1])('by %d: values and their targets by the factor, the policy as it was', async factor => {
    const [same, other] = [await goOn({}, 1), await goOn({}, factor)];
    expect(other.row['value/mean']).toBeCloseTo(same.row['value/mean'] * factor, 4);
    expect(other.row['return/mean'] / same.row['return/mean']).toBeCloseTo(factor, 3);
    // The same share of the returns is explained as if nothing had changed; without it, nothing would be.
    expect(other.row['value/explained_variance']).toBeCloseTo(same.row['value/explained_variance'], 3);
    // The policy that goes on is the one that was saved: its rollout is the same to the bit.
    expect(other.row['reward/mean']).toBe(same.row['reward/mean']);
  });

  it('scales what Adam remembers as gradients scale: the next update moves the policy as it would have', async () => {
    // Without a clip, which would tie the policy to the size of the critic's gradient.
    const free = { gradientClip: null, valueCoef: 1 };
    const [same, other] = [await goOn(free, 1), await goOn(free, 4)];
    expect(other.row['kl/step']).toBeCloseTo(same.row['kl/step'], 5);
    expect(other.row['loss/value'] / same.row['loss/value']).toBeGreaterThan(12);
    expect(other.row['loss/value'] / same.row['loss/value']).toBeLessThan(20);
  });

  it('with normalised rewards only the normaliser changes, and nothing else notices', async () => {
    const normal = { normaliseRewards: true };
    const [same, other] = [await goOn(normal, 1), await goOn(normal, 25)];
    for (const name of ['loss/value', 'kl/step', 'value/mean', 'adv/std', 'return/mean']) {
      expect(other.row[name]).toBeCloseTo(same.row[name], 4);
    }
  });
});
