import { expect, it } from 'vitest';
import { namedCode } from '../../src/runs/named-code.ts';
import { permit } from '../../src/sweep/permit.ts';
import { python, pythonFile } from '../envs/python/support/files.ts';

const named = (env: string, options: Record<string, string> = {}) =>
  namedCode({ config: { env }, environment: { id: 'x', options } });

it('a Python file, an id of Gymnasium and a Python that a run names are code', () => {
  const walker = pythonFile('walker.py');
  expect(named(`${walker}:Walker`)).toEqual([
    {
      field: 'config.env',
      value: `${walker}:Walker`,
      path: walker,
      sha256: expect.stringMatching(/^\w{64}$/),
    },
  ]);
  const [gym] = named('gym:os:Env-v0');
  expect(gym).toMatchObject({ field: 'config.env', path: 'gym:os:Env-v0' });
  // What it is made with is part of what is trusted.
  expect(named('gym:os:Env-v0', { args: '{"x": 1}' })[0].sha256).not.toBe(gym.sha256);
  expect(named('cartpole', { python: python || 'python3' }).map(({ field }) => field)).toEqual([
    'environment.options.python',
  ]);
  expect(named('cartpole', { python: '' })).toEqual([]);
});

it('a worker runs an id of Gymnasium only where that was named', () => {
  const subject = { kind: 'env', reference: 'gym:CartPole-v1', sha256: null, options: {} } as const;
  expect(() => permit(subject, {})).toThrow(/--file gym:CartPole-v1 allows it/);
  expect(permit(subject, { files: ['gym:CartPole-v1'] }).reference).toBe('gym:CartPole-v1');
});
