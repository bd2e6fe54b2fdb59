/** What the doctor advises the autopilot of a run in which a person changed a setting. */
import { expect, test } from 'vitest';
import type { Look } from '../../src/algos/autopilot/advice.ts';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import { advisor } from '../../src/autopilot/advisor.ts';
import { resolveSettings } from '../../src/settings/resolve.ts';

const CHANGED = 30;
const wave = (i: number, size: number): number => size * Math.sin(2.399963 * i);

/** A run of Pendulum's kind that learns until a rate of 1e-7 is set; from then on `after` is its return. */
function look(after: (i: number) => number, changed = CHANGED): Look {
  const rows = Array.from({ length: 60 }, (_, i) => {
    const learns = i < CHANGED;
    return {
      'train/iteration': i + 1,
      'train/step': 4096 * (i + 1),
      'train/lr': learns ? 1e-3 : 1e-7,
      'train/epochs_run': 10,
      'kl/step': learns ? 0.006 + wave(i, 0.002) : 1e-9,
      'policy/clip_fraction': learns ? 0.08 + wave(i, 0.02) : 0,
      'policy/entropy': learns ? 1.4 - 0.02 * i : 0.8,
      'policy/std': learns ? 1 - 0.01 * i : 0.7,
      'value/explained_variance': 0.6 + wave(i, 0.05),
      'loss/value': 20 + wave(i, 2),
      'loss/policy': learns ? -0.006 : -1e-8,
      'grad/norm': 0.4,
      'episode/count': 20,
      'episode/return': (learns ? -1400 + 20 * i : after(i)) + wave(i, 15),
    };
  });
  return {
    dir: 'made',
    algorithm: 'ppo',
    environment: { id: 'Pendulum-v1', version: '1', options: {}, reward: { scale: 1, normalised: false } },
    seed: 1,
    config: resolveSettings(ppoSettings, {
      given: { learningRate: 1e-7, steps: 60 * 4096, guard: null },
    }) as never,
    rows,
    changed,
    error: null,
  };
}

test('a run that learnt until a setting was changed, and stands still since, is judged by the rows since', async () => {
  const stands = look(() => -800);
  expect(await advisor(stands)).toMatchObject({ cause: 'learning-rate-too-low' });
  // By all rows together the half that learnt hides it: that is what the change is told for.
  expect(await advisor({ ...stands, changed: 0 })).toBeUndefined();
});

test('a run that rises further since a change is left alone', async () => {
  expect(await advisor(look(i => -1400 + 20 * i))).toBeUndefined();
});
