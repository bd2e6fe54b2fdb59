import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withMarked } from '../../bench/marked.ts';
import type { Axis } from '../../bench/scaling/axes.ts';
import { documentOf, lawsOf, type Measured, pictureOf } from '../../bench/scaling/document.ts';
import { constant, linear } from '../../bench/scaling/law.ts';

const axis: Axis = {
  name: 'things',
  title: 'Things',
  how: 'counted one by one',
  counts: 'things',
  ns: [1, 10, 100, 1000],
  quickNs: [1],
  variants: ['small', 'large'],
  quantities: [
    { key: 'perSecond', name: 'things/s', unit: '/s' },
    { key: 'ms', name: 'time', unit: 'ms', terms: [constant, linear] },
  ],
  measure: async () => ({}),
};
/** The larger ones leave their law at a thousand. */
const measured: Measured[] = axis.variants.flatMap(variant =>
  axis.ns.map(n => {
    const ms = variant === 'small' ? 5 + n / 10 : 50 + n * (n === 1000 ? 3 : 1);
    return { axis: 'things', variant, n, figures: { perSecond: 1000 / ms, ms } };
  }),
);

test('quantities with terms have laws, variant by variant, with where they break', () => {
  const laws = lawsOf(axis, measured);
  expect(laws.map(({ variant, quantity }) => `${variant} ${quantity.key}`)).toEqual(['small ms', 'large ms']);
  expect(laws[0].law).toMatchObject({ from: 1, to: 1000, breaks: [] });
  expect(laws[1].law).toMatchObject({
    from: 1,
    to: 100,
    breaks: [{ n: 1000, ratio: expect.closeTo(3050 / 1050, 9) }],
  });
});

test('the document has each point and each law in a table', () => {
  const text = documentOf([axis], measured, { by: 'By hand.', picture: 'pictures/things.svg' });
  expect(text.split('\n')).toEqual([
    'By hand.',
    '',
    '![Scaling: measured, and the laws dashed](pictures/things.svg)',
    '',
    '### Things: `npm run bench -- scaling --only things`',
    '',
    'counted one by one.',
    '',
    '| things | small: things/s | small: time, ms | large: things/s | large: time, ms |',
    '| --- | --- | --- | --- | --- |',
    '| 1 | 196 | 5.1 | 19.6 | 51 |',
    '| 10 | 167 | 6 | 16.7 | 60 |',
    '| 100 | 66.7 | 15 | 6.67 | 150 |',
    '| 1,000 | 9.52 | 105 | 0.328 | 3,050 |',
    '',
    '| n: things | law | fitted to n | largest deviation there | breaks |',
    '|---|---|---|---|---|',
    '| small: time | 5 + 0.1·n ms | 1 to 1,000 | 0.0 % | nowhere |',
    '| large: time | 50 + 1·n ms | 1 to 100 | 0.0 % | at 1,000: 2.9 x the law |',
  ]);
});

test('what follows no law says what comes closest, and too few points say so', () => {
  const jumping = measured.map(point => ({
    ...point,
    figures: { perSecond: 1, ms: point.n === 10 ? 1000 : 10 },
  }));
  const textOf = (points: readonly Measured[]): string =>
    documentOf([{ ...axis, variants: ['small'] }], points, { by: '', picture: '' });
  expect(textOf(jumping)).toMatch(
    /\| time \| none; closest is \S+ ms \| 1 to 1,000 \| \d+ % \| everywhere \|/,
  );
  expect(textOf(jumping.slice(0, 2))).toContain('| time | too few points |');
});

test('the picture has a panel a quantity with laws, in which laws are dashed and all is inside', () => {
  const svg = pictureOf([axis], measured);
  expect(svg.match(/<polyline/g)).toHaveLength(4);
  expect(svg.match(/<polyline[^>]*stroke-dasharray/g)).toHaveLength(2);
  for (const variant of axis.variants) expect(svg).toContain(`>${variant}</text>`);
  const places = [...svg.matchAll(/points="([^"]+)"/g)].flatMap(([, all]) =>
    all.split(' ').map(pair => pair.split(',').map(Number)),
  );
  for (const [x, y] of places) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x).toBeLessThanOrEqual(300);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(190);
  }
});

test('a marked region is replaced, the one of its name alone', () => {
  const text = 'a\n<!-- one -->\nx\n<!-- end -->\nb\n<!-- two -->\ny\n<!-- end -->\nc\n';
  expect(withMarked(text, 'two', 'z')).toBe(text.replace('y', 'z'));
  expect(() => withMarked(text, 'three', 'z')).toThrow('there is no <!-- three --> … <!-- end -->');
  expect(withMarked(readFileSync('docs/results.md', 'utf8'), 'scaling', 'z')).toContain(
    '<!-- scaling -->\nz\n',
  );
});
