/** A run as CSV, whoever opens it: names that others chose are never a spreadsheet's formula. */
import { expect, test } from 'vitest';
import { csvOf } from '../../src/server/http/csv.ts';
import type { WatchedRun } from '../../src/server/runs/run.ts';

/** A run of another trainer with these series: places and values. */
function foreign(series: Readonly<Record<string, readonly (readonly [number, number])[]>>): WatchedRun {
  const tracks = Object.entries(series).map(([name, points]) => [
    name,
    {
      length: points.length,
      x: () => points.map(([x]) => x),
      column: { at: (i: number) => points[i][1] },
    },
  ]);
  return { tracks: () => new Map(tracks as never) } as unknown as WatchedRun;
}

const textOf = (run: WatchedRun): Promise<string> => new Response(csvOf(run)).text();

test('names that begin as a formula does are kept from being one, others are as they were', async () => {
  const names = ['=1+1', '+x', '-x', '@SUM(A1)', '\tx', 'a=b', 'loss/policy', 'with "quotes", and commas'];
  const text = await textOf(foreign(Object.fromEntries(names.map(name => [name, [[1, 2] as const]]))));
  expect(text.split('\r\n')[0]).toBe(
    `x,'=1+1,'+x,'-x,'@SUM(A1),'\tx,a=b,loss/policy,"with ""quotes"", and commas"`,
  );
  expect(await textOf(foreign({ '\rx': [] }))).toBe(`x,"'\rx"\r\n`);
});

test('series with places of their own share a row where they meet', async () => {
  const text = await textOf(
    foreign({
      a: [
        [1, 10],
        [3, 30],
      ],
      b: [
        [2, Number.NaN],
        [3, 5],
      ],
    }),
  );
  expect(text).toBe('x,a,b\r\n1,10,\r\n2,,NaN\r\n3,30,5\r\n');
});
