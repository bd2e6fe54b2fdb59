import { expect, test } from 'vitest';
import { firstIteration, type Parts, tryParts } from '../../src/algos/preflight.ts';
import { ConfigError, MismatchError } from '../../src/base/errors.ts';

const names = ['make', 'collect', 'score', 'update'];

/** An algorithm whose first iteration fails with this error, and whether what it had opened was closed. */
function failing(error: Error) {
  const state = { closed: false };
  async function* parts(): Parts {
    try {
      yield { detail: 'made', warnings: ['slow'] };
      yield* firstIteration({ iterate: () => Promise.reject(error) });
      yield { detail: 'not here' };
    } finally {
      state.closed = true;
    }
  }
  return { state, parts: parts() };
}

test.each<[string, Error, string[]]>([
  ['an error', new Error('no rewards'), ['passed', 'failed', 'not reached', 'not reached']],
  // An iteration collects and scores in one go.
  ['a refusal to score', new MismatchError('off by 2'), ['passed', 'passed', 'failed', 'not reached']],
])(
  '%s fails its part, the rest is not reached, and what was opened is closed',
  async (_, error, statuses) => {
    const { state, parts } = failing(error);
    const seen: string[] = [];
    const reports = await tryParts(names, parts, ({ part }) => seen.push(part));
    expect(seen).toEqual(names);
    expect(reports.map(({ status }) => status)).toEqual(statuses);
    expect(reports[0]).toMatchObject({ part: 'make', detail: 'made', warnings: ['slow'] });
    expect(reports.find(({ status }) => status === 'failed')!.detail).toBe(error.message);
    expect(state.closed).toBe(true);
  },
);

test('wrong settings are no part that failed', async () => {
  const { state, parts } = failing(new ConfigError('epochs is 0'));
  await expect(tryParts(names, parts, undefined)).rejects.toThrow('epochs is 0');
  expect(state.closed).toBe(true);
});
