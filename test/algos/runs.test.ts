/** What `train` and its kin refuse before anything is made. */
import { expect, test } from 'vitest';
import { fork, resume, train } from '../../src/algos/runs.ts';
import { ConfigError } from '../../src/base/errors.ts';

/** What JavaScript can pass. */
const loose = <T>(call: T): ((...args: unknown[]) => Promise<unknown>) => call as never;

test.each([[[]], [[{}]], [[null]], [[{ env: 3 }]], [[{ config: { steps: 5 } }]]])(
  'train(...%j) says what it needs',
  async args => {
    const error = (await loose(train)(...args).catch(e => e)) as Error;
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toMatch(
      /^train(ing)? needs an environment or a task, not .*: train\(\{ env: 'cartpole' \}\)/,
    );
  },
);

test.each([
  ['resume', resume],
  ['fork', fork],
] as const)('%s() says what it needs', async (name, call) => {
  await expect(loose(call)()).rejects.toThrow(
    new RegExp(`^${name} needs a run, not undefined: ${name}\\('last'\\)`),
  );
});

test.each([
  [{ env: 'cartpole', task: 'arithmetic' }, 'env and task'],
  [{ task: 'arithmetic', envOptions: {} }, 'task and envOptions'],
  [{ env: 'cartpole', taskOptions: {} }, 'env and taskOptions'],
])('train(%j) would ignore one of two', async (options, which) => {
  await expect(loose(train)(options)).rejects.toThrow(
    `train was given ${which}, of which one would be ignored: use { env, envOptions } or { task, taskOptions }`,
  );
});

test.each(['../else', 'a/b', ''])('a run cannot be called %j, and nothing is made', async id => {
  await expect(train({ env: 'cartpole', id })).rejects.toThrow(/^run id .*: use letters, digits/);
});
