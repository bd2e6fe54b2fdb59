import { describe, expect, test, vi } from 'vitest';
import { ConfigError, codeOf, KeelError, RunError, show } from '../../src/base/errors.ts';
import { ReadError } from '../../src/doctor/readers/errors.ts';
import { EngineError } from '../../src/engine/errors.ts';
import { EnvError } from '../../src/envs/errors.ts';
import { LmError } from '../../src/lm/errors.ts';
import { SafetensorsError } from '../../src/nn/index.ts';
import { TaskError } from '../../src/tasks/errors.ts';

describe('an error that is the user’s to mend', () => {
  test('has a line for each problem, and says which setting each is about', () => {
    const problems = [{ key: 'gamma', text: 'gamma is 2' }, { text: 'nothing fits' }];
    const error = new ConfigError(problems);
    expect(error.message).toBe('gamma is 2\nnothing fits');
    expect(error.problems).toEqual(problems);
    expect(new RunError('the disk is full').problems).toEqual([{ text: 'the disk is full' }]);
  });

  test('keeps its code and its cause', () => {
    const cause = new Error('below');
    const error = new RunError('above', { code: 'ENOSPC', cause });
    expect([error.code, codeOf(error), error.cause]).toEqual(['ENOSPC', 'ENOSPC', cause]);
    expect(Object.hasOwn(new RunError('alone'), 'cause')).toBe(false);
    expect(new EnvError('env-unknown', 'no such').code).toBe('env-unknown');
    expect(new TaskError('task-unknown', 'no such', { cause }).cause).toBe(cause);
    expect([codeOf(new RunError('none')), codeOf(undefined), codeOf('text')]).toEqual(['', '', '']);
  });

  test.each([
    new RunError('x'),
    new ConfigError('x'),
    new EnvError('env-unknown', 'x'),
    new TaskError('task-unknown', 'x'),
    new EngineError('x'),
    new LmError('x'),
    new SafetensorsError('x'),
    new ReadError('path', 'x'),
  ])('$name is told by its class, and is of no other', error => {
    expect(error).toBeInstanceOf(KeelError);
    expect(error).toBeInstanceOf(Error);
    const kinds = [
      RunError,
      ConfigError,
      EnvError,
      TaskError,
      EngineError,
      LmError,
      SafetensorsError,
      ReadError,
    ];
    expect(kinds.filter(kind => error instanceof kind)).toEqual([error.constructor]);
    expect(error.name).toBe(error.constructor.name);
  });

  test('is told from others, also if another copy of the module made it', async () => {
    for (const other of [
      new Error('x'),
      new TypeError('x'),
      { name: 'RunError' },
      null,
      undefined,
      'KeelError',
    ])
      expect(other instanceof KeelError).toBe(false);
    vi.resetModules();
    const copy = await import('../../src/base/errors.ts');
    expect(copy.KeelError).not.toBe(KeelError);
    const error = new copy.RunError('x', { code: 'locked' });
    expect(error instanceof KeelError && error.code).toBe('locked');
    expect(error instanceof RunError).toBe(false);
  });
});

test('a value in a message is short and on one line, whatever it is', () => {
  expect([show(1.5), show('a\nb'), show(undefined), show(10n), show([1, 'x'])]).toEqual([
    '1.5',
    '"a\\nb"',
    'undefined',
    '10',
    '[1,"x"]',
  ]);
  expect(show('x'.repeat(58))).toBe(`"${'x'.repeat(58)}"`);
  expect(show('x'.repeat(59))).toBe(`"${'x'.repeat(56)}…`);
  const cycle: { own?: unknown } = {};
  cycle.own = cycle;
  expect(show(cycle)).toBe('a(n) object');
});
