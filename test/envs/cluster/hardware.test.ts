import { describe, expect, it } from 'vitest';
import {
  attentionSecondsPerToken,
  blocksOf,
  prefillAttentionSeconds,
} from '../../../src/envs/cluster/hardware.ts';
import { hardwareList, hardwareNamed, hardwareNames, iterationMs } from '../../../src/envs/cluster/index.ts';

const tokens = [1, 64, 128, 256, 512, 1024, 2048, 4096];
/** Measured milliseconds of iterations over so many tokens, all operators but attention. */
const measured: Record<string, number[]> = {
  'a100-8b': [9.7, 11.2, 13.2, 19.5, 34.6, 75, 146, 274],
  a100: [9.3, 9.7, 12.2, 17.8, 33.4, 68, 133, 258],
  h100: [5.6, 5.9, 6.4, 9.2, 12.0, 21, 40, 83],
  a40: [23.9, 30.1, 30.3, 44.6, 71, 137, 259, 523],
  'a100x4-70b': [24.9, 26.9, 33.5, 51, 90, 187, 336, 656],
};

describe('iteration times', () => {
  it.each(hardwareNames)('%s: within 10 % of what was measured, at every size', name => {
    const hardware = hardwareNamed(name);
    tokens.forEach((n, i) => {
      expect(Math.abs(iterationMs(hardware, n) / measured[name][i] - 1)).toBeLessThan(0.1);
    });
  });

  it('attention of a prefill is quadratic, the same in pieces, and no faster than the device', () => {
    const a100 = hardwareNamed('a100');
    const whole = prefillAttentionSeconds(a100, 0, 4096);
    // 4096 · 4097 / 2 pairs, 4 · 32 · 4096 operations each, 312e12 of them a second.
    expect(1000 * whole).toBeCloseTo(14.0997, 4);
    expect(prefillAttentionSeconds(a100, 0, 8192) / whole).toBeCloseTo(4, 2);
    let pieces = 0;
    for (let done = 0; done < 4096; done += 512) pieces += prefillAttentionSeconds(a100, done, 512);
    expect(pieces).toBeCloseTo(whole, 12);
    for (const name of hardwareNames) {
      const hardware = hardwareNamed(name);
      // One token after a context is what decoding is: bound by reading.
      expect(prefillAttentionSeconds(hardware, 4095, 1)).toBe(4096 * attentionSecondsPerToken(hardware));
    }
  });

  it('memory: what the weights leave of nine tenths', () => {
    // (80e9 * 0.9 - 13.5e9) / (524288 * 16) = 6973.9
    expect(blocksOf(hardwareNamed('a100'))).toBe(6973);
  });
});

describe('lists of hardware', () => {
  it('repeats with a star, keeps the order', () => {
    expect(hardwareList('h100, 2*a100,a40').map(({ name }) => name)).toEqual(['h100', 'a100', 'a100', 'a40']);
  });

  it.each([
    ['', /a cluster needs a replica/],
    [' , ', /a cluster needs a replica/],
    ['a10', /the hardware "a10" is unknown: .*a100/],
    ['0*a100', /no replica at all/],
    ['300*a100', /300 replicas are too many: at most 256/],
  ])('refuses %j', (text, message) => {
    expect(() => hardwareList(text)).toThrow(message);
  });
});
