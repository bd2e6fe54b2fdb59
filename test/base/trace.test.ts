/** Where in somebody's own code it went wrong, and the stack that says so. */
import { expect, test } from 'vitest';
import { placeInOwnCode, wholeTrace } from '../../src/base/trace.ts';

function stack(...frames: string[]): Error {
  return Object.assign(new Error('broke'), {
    stack: `Error: broke\n${frames.map(f => `    at ${f}`).join('\n')}`,
  });
}
const keel = new URL('../../src/envs/simulation.ts', import.meta.url).pathname;

test.each([
  ['a path', ['physics (/home/me/game.ts:12:5)'], 'game.ts:12'],
  ['an address, as tsx writes it', ['file:///home/me/my%20game.mts?namespace=17:3:1'], 'my game.mts:3'],
  ['behind a package', ['f (/home/me/node_modules/lib/x.js:1:1)', 'g (/home/me/game.ts:4:2)'], 'game.ts:4'],
  ['behind Node', ['node:fs:1:1', 'new Game (/home/me/game.ts:9:2)'], 'game.ts:9'],
  ['Keel alone', [`step (${keel}:164:17)`], undefined],
  ['nothing', [], undefined],
])('%s', (_, frames, place) => {
  expect(placeInOwnCode(stack(...frames))).toBe(place);
});

test('the place of the first cause; none of what is no error', () => {
  const inner = stack('physics (/home/me/game.ts:12:5)');
  expect(placeInOwnCode(new Error('told', { cause: new Error('of it', { cause: inner }) }))).toBe(
    'game.ts:12',
  );
  expect(placeInOwnCode('text')).toBeUndefined();
  expect(placeInOwnCode(undefined)).toBeUndefined();
});

test('a trace begins with what was thrown first, and ends with what it came up as', () => {
  const inner = stack('physics (/home/me/game.ts:12:5)');
  const trace = wholeTrace(new TypeError('outer', { cause: new Error('middle', { cause: inner }) }))!;
  expect(trace.startsWith(inner.stack!)).toBe(true);
  expect(trace).toContain('\n\nwhich came up as\nTypeError: outer\n');
  expect(trace).not.toContain('middle');
  expect(wholeTrace(inner)).toBe(inner.stack);
  expect(wholeTrace('text')).toBeUndefined();
});

test('errors that cause each other end', () => {
  const [one, other] = [stack('a (/home/me/a.ts:1:1)'), stack('b (/home/me/b.ts:1:1)')];
  one.cause = other;
  other.cause = one;
  expect(wholeTrace(one)).toContain('b.ts:1');
});
