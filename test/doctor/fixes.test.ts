/** What to change, as data: its sentence is made of it. */
import { describe, expect, it } from 'vitest';
import { wordingOf } from '../../src/doctor/dialects/wording.ts';
import { fixOf, type SettingChange, together } from '../../src/doctor/fixes.ts';

const rate: SettingChange = { setting: 'learningRate', name: 'lr', from: null, value: 1e-4 };

describe('a fix', () => {
  it('is a sentence, something to type, or settings with their values', () => {
    expect(fixOf('rest a while')).toEqual({ kind: 'prose', text: 'rest a while' });
    expect(fixOf({ code: 'make rest' })).toEqual({ kind: 'code', code: 'make rest', text: 'make rest' });
    expect(fixOf({ code: 'make rest', aside: 'for a while' })).toEqual({
      kind: 'code',
      code: 'make rest',
      aside: 'for a while',
      text: 'make rest (for a while)',
    });
    expect(fixOf({ code: '--lr 1e-4' }, [rate])).toEqual({
      kind: 'setting',
      changes: [rate],
      code: '--lr 1e-4',
      text: '--lr 1e-4',
    });
    expect(fixOf('set lr to 1e-4', [rate])).toEqual({
      kind: 'setting',
      changes: [rate],
      text: 'set lr to 1e-4',
    });
  });

  it('of several keeps all settings, and is to be typed only if all of it is', () => {
    const typed = fixOf({ code: '--lr 1e-4' }, [rate]);
    expect(together([])).toBeUndefined();
    expect(together([typed])).toBe(typed);
    expect(together([typed, fixOf({ code: '--no-anneal' })])).toEqual({
      kind: 'setting',
      changes: [rate],
      code: '--lr 1e-4; --no-anneal',
      text: '--lr 1e-4; --no-anneal',
    });
    expect(together([typed, fixOf('rest')])).toEqual({
      kind: 'setting',
      changes: [rate],
      text: '--lr 1e-4; rest',
    });
    expect(together([typed, fixOf({ code: 'x', aside: 'y' })])).not.toHaveProperty('code');
  });

  it("holds a number as it is typed, and the trainer's own settings where they stand for one of ours", () => {
    const wording = wordingOf({
      names: { targetKl: 'kl' },
      otherwise: {
        rewardScale: () => ({ code: '--scaled', sets: [['scaled', true]] }),
        epochs: typed => `go over it ${typed} times`,
      },
      write: pairs => ({ code: pairs.map(([name, value]) => `${name}=${value}`).join(' ') }),
    });
    expect(wording.setting({ targetKl: 0.1 + 0.2 })).toMatchObject({
      changes: [{ setting: 'targetKl', name: 'kl', from: null, value: 0.3 }],
      text: 'kl=0.3',
    });
    expect(wording.setting({ rewardScale: 0.01 })).toEqual({
      kind: 'setting',
      changes: [{ setting: 'rewardScale', name: 'scaled', from: null, value: true }],
      code: '--scaled',
      text: '--scaled',
    });
    expect(wording.setting({ epochs: 3 })).toEqual({ kind: 'prose', text: 'go over it 3 times' });
    expect(wording.setting({ gamma: 1 })).toBeUndefined();
  });
});
