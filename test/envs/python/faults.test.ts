import { afterEach, describe, expect, it } from 'vitest';
import { type AnyMakeOptions, EnvError, makeVectorEnv, type VectorEnv } from '../../../src/envs/index.ts';
import { python, pythonFile } from './support/files.ts';

const walker = pythonFile('walker.py');
const opened: VectorEnv[] = [];
afterEach(async () => {
  for (const envs of opened.splice(0)) await envs.close().catch(() => {});
});

async function open(name: string, options: AnyMakeOptions = {}, workers = 0): Promise<VectorEnv> {
  const envs = await makeVectorEnv(`${walker}:${name}`, {
    envCount: 2,
    workers,
    options: { python, ...options },
  });
  opened.push(envs);
  return envs;
}

/** Steps until something goes wrong, and what does. */
async function faultOf(fault: string, workers = 0, options: AnyMakeOptions = {}): Promise<EnvError> {
  try {
    const envs = await open('Walker', { args: JSON.stringify({ fault }), ...options }, workers);
    await envs.reset({ seed: 1 });
    for (let i = 0; i < 8; i++) await envs.step(new Float32Array(2));
  } catch (error) {
    expect(error).toBeInstanceOf(EnvError);
    return error as EnvError;
  }
  throw new Error(`nothing went wrong with ${fault}`);
}

const faults: readonly [fault: string, message: RegExp, options?: AnyMakeOptions][] = [
  ['throw', /step 5 of the episode: ValueError: the floor gave way \(walker\.py:\d+ in _throw\)$/],
  ['throw_in_a_package', /JSONDecodeError: .* \(walker\.py:\d+ in _throw_in_a_package\)$/],
  [
    'close_all',
    /it ended with exit code 1; it last printed: keel: an environment has closed a file that is not its own/,
  ],
  ['exit', /it called sys\.exit\(3\)/],
  ['die', /died 3 times at the same call: it ended with exit code 7/],
  ['nan', /observation\[0\] is NaN after step 5/],
  ['nan_reward', /the reward is NaN after step 5/],
  ['shape', /observation has the shape \(2,\), its space \(3,\)/],
  ['dtype', /observation has the dtype <U1, which is no number/],
  ['huge', /observation has the shape \(50000000,\), its space \(3,\)/],
  ['triple', /step\(\) gave a tuple of 3/],
  ['flag', /terminated is None: return True or False/],
  ['reward', /the reward is 'much': return a number/],
  ['writes_to_pipes', /it answered with bytes that are no frame/],
  ['forks_and_dies', /died 3 times at the same call: it ended with exit code 7/],
  ['hang', /it hung: a step took more than .* s, at walker\.py:\d+ in _hang/, { stepSeconds: 0.3 }],
];

describe('a fault in Python is an error that says what, where and in which environment', () => {
  it.each(faults)('%s', async (fault, message, options) => {
    const error = await faultOf(fault, 0, options);
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^environment 0 of 2 \(py:walker\.Walker-v0, seed \d+, step 5\)/);
    expect(error.place?.step).toBe(5);
  });

  it('the traceback is the stack of the cause', async () => {
    let root: unknown = await faultOf('throw');
    while (root instanceof Error && root.cause !== undefined) root = root.cause;
    expect((root as Error).stack).toMatch(/Traceback \(most recent call last\):[\s\S]*walker\.py/);
  });

  it('in a worker that waits for it, too', async () => {
    const error = await faultOf('hang', 1, { stepSeconds: 0.3 });
    expect(error.message).toMatch(/it hung: a step took more than/);
  });
});

it.each(['prints', 'forks'])('what a step %s does no harm', async fault => {
  const [one, other] = [
    await open('Walker', { args: JSON.stringify({ fault }) }),
    await open('Walker', { args: '{}' }),
  ];
  for (const envs of [one, other]) await envs.reset({ seed: 3 });
  for (let i = 0; i < 12; i++) {
    for (const envs of [one, other]) await envs.step(new Float32Array([1, 0]));
    expect([...one.observations]).toEqual([...other.observations]);
    expect([...one.rewards]).toEqual([...other.rewards]);
  }
});

const refused: readonly [what: string, reference: string, options: AnyMakeOptions, message: RegExp][] = [
  ['a class that is not there', `${walker}:Nope`, {}, /has no Nope: it has Walker, Remembers, Forgets, Old/],
  ['what is no class', `${walker}:nothing`, {}, /nothing in .* is of the type int: name a class/],
  ['a file without a class', walker, {}, /say which, as .*walker\.py:MyEnv/],
  ['a file that is not there', './nowhere.py:Env', {}, /there is no such file/],
  [
    'arguments that it has not',
    `${walker}:Walker`,
    { args: '{"speed": 3}' },
    /unexpected keyword argument 'speed'/,
  ],
  ['arguments that are no JSON', `${walker}:Walker`, { args: '{size' }, /is no JSON/],
  [
    'a Python that is none',
    `${walker}:Walker`,
    { python: '/bin/true' },
    /\/bin\/true is Python "", environments need 3\.9/,
  ],
  [
    'a Python that is not there',
    `${walker}:Walker`,
    { python: 'no-such-python' },
    /"no-such-python" is no program/,
  ],
  [
    'a file that does not parse',
    `${pythonFile('broken.py')}:Env`,
    {},
    /SyntaxError: .*\(broken\.py, line 2\)/,
  ],
  [
    'a package that is missing',
    `${pythonFile('needs.py')}:Env`,
    {},
    /needs the Python package no_such_package, which .* does not have: .* -m pip install no_such_package/,
  ],
  [
    'a space that is none',
    `${pythonFile('needs.py')}:Wordy`,
    {},
    /Text is no space that Keel takes: use Box/,
  ],
  ['a space that is huge', `${pythonFile('needs.py')}:Vast`, {}, /100000000 numbers, at most 4194304/],
  [
    'a process that ends while it starts',
    `${pythonFile('needs.py')}:Dies`,
    {},
    /did not get through its start: it ended with exit code 9/,
  ],
];

it.each(refused)('refuses %s', async (_, reference, options, message) => {
  await expect(makeVectorEnv(reference, { envCount: 1, options: { python, ...options } })).rejects.toThrow(
    message,
  );
});
