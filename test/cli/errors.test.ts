/** What a user sees of an error, and the exit code. */
import { expect, it } from 'vitest';
import { ConfigError, RunError } from '../../src/base/errors.ts';
import { ExitWith, reportError, UsageError } from '../../src/cli/errors.ts';

function told(error: unknown): { text: string; code: number } {
  let text = '';
  const code = reportError(error, more => {
    text += more;
  });
  return { text, code };
}

it('is a line a problem, and 2 where what was asked for is wrong', () => {
  expect(told(new UsageError('no such option'))).toEqual({ text: 'keel: no such option\n', code: 2 });
  expect(told(new ConfigError('a\nb'))).toEqual({ text: 'keel: a\nkeel: b\n', code: 2 });
  expect(told(new RunError('the disk is full', { code: 'ENOSPC' })).code).toBe(1);
  expect(told(new ExitWith(3))).toEqual({ text: '', code: 3 });
});

it('never drives a terminal, whoever wrote what it quotes', () => {
  for (const error of [new RunError('a\u001b[31mb\u0007\u202ec'), new Error('a\u001b]0;title\u0007bc')]) {
    const { text } = told(error);
    expect(text).not.toMatch(/[^\n -~]/);
    expect(text).toContain('abc');
  }
});

it('of ours by mistake is one line that says so', () => {
  const { text, code } = told(new TypeError('x is not a function\nat y'));
  expect(text).toBe(
    'keel: TypeError: x is not a function (this is a fault in Keel: KEEL_DEBUG=1 shows where)\n',
  );
  expect(code).toBe(1);
});
