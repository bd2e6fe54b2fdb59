import { describe, expect, test } from 'vitest';
import { escapeControls, withoutControls } from '../../src/base/controls.ts';
import { ConfigError, KeelError } from '../../src/base/errors.ts';
import { painter, shownText } from '../../src/base/terminal.ts';

const hostile = [
  '\u001b]0;title\u0007',
  '\u001b[2J\u001b[1;1H',
  '\u001b[31m',
  '\u009b31m',
  '\u001bP1$r\u001b\\',
  '\r',
  '\b\b',
  '\u0000\u007f\u0085',
  '\u202e\u200b',
];

describe('nothing that drives a terminal stays', () => {
  test.each(hostile)('%j', text => {
    expect(withoutControls(`a${text}b`)).toBe('ab');
    expect(shownText(`a${text}b`, false)).toBe('ab');
    expect(new KeelError(`a${text}b`).message).toBe('ab');
    expect(new ConfigError([{ key: 'k', text: `a${text}b` }]).problems).toEqual([{ key: 'k', text: 'ab' }]);
  });

  test('what people write does: lines, tabs, letters of every kind', () => {
    const text = 'KL(old ‖ new)\n\té 漢字 😀 ± …';
    expect(withoutControls(text)).toBe(text);
    expect(shownText(text, true)).toBe(text);
  });

  test("the painter's own colours pass where there are colours, no others do", () => {
    const painted = painter(true)('sick', 'badge-red');
    expect(shownText(painted, true)).toBe(painted);
    expect(shownText(painted, false)).toBe('sick');
    expect(shownText(`${painted}\u001b[8mhidden\u001b[2K`, true)).toBe(`${painted}hidden`);
  });

  test('a colour that does not end is not of the painter, and colours nothing after it', () => {
    const paint = painter(true);
    const nested = paint(`a ${paint('b', 'dim')} c`, 'red');
    expect(shownText(nested, true)).toBe(nested);
    for (const text of ['\u001b[31mred', 'red\u001b[39m', '\u001b[31m\u001b[2mred\u001b[39m\u001b[22m'])
      expect(shownText(`${text} ${paint('sick', 'red')}`, true)).toBe('red sick');
  });

  test('in JSON they are escapes, so that it reads back as it was', () => {
    const value = {
      [`k${hostile.join('')}`]: ['\u2028\u{e0041}é 漢字 😀', { x: `\ufeff${hostile.join('\n')}` }],
    };
    for (const indent of [0, 2]) {
      const json = escapeControls(JSON.stringify(value, null, indent));
      expect(JSON.parse(json)).toEqual(value);
      expect(json).toContain('é 漢字 😀');
      expect(json.replaceAll('\n', '')).toBe(withoutControls(json.replaceAll('\n', '')));
      expect(json).not.toMatch(/[\u2028\u2029]/);
    }
  });
});
