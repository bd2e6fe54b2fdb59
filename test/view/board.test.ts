/** Drawings in two dimensions: what is refused, areas in closed form, and the way through a replay and back. */
import { describe, expect, test } from 'vitest';
import { decodeReplay, encodeReplay, replayHeader } from '../../src/runs/replay-format.ts';
import { createBoardPainter } from '../../src/view/draw/board.ts';
import { dotsOf } from '../../src/view/draw/letters.ts';
import { type Drawing, type DrawnShape, drawingLimits, parseDrawing } from '../../src/view/drawing.ts';
import { boardReplay } from './support/board-replay.ts';

const board = (...shapes: DrawnShape[]): Drawing => ({ width: 10, height: 10, shapes });

/** How much of a picture of 100 by 100 is not white, in units of the drawing: its area. */
function areaOf(drawing: Drawing): number {
  const pixels = createBoardPainter(100, 100, false)(drawing);
  let dark = 0;
  for (let i = 0; i < pixels.length; i += 3) dark += 1 - pixels[i] / 255;
  return dark / 100;
}

describe('pictures', () => {
  const black = '#000000' as const;
  test.each<[string, DrawnShape, number]>([
    ['rectangle', { kind: 'rectangle', x: 1.23, y: 2, width: 3.5, height: 2.25, fill: black }, 3.5 * 2.25],
    ['circle', { kind: 'circle', x: 5, y: 5, radius: 3, fill: black }, Math.PI * 9],
    ['ring', { kind: 'circle', x: 5, y: 5, radius: 3, stroke: black, lineWidth: 0.5 }, 2 * Math.PI * 3 * 0.5],
    ['frame', { kind: 'rectangle', x: 2, y: 2, width: 4, height: 4, stroke: black, lineWidth: 1 }, 25 - 9],
    [
      'line',
      { kind: 'line', points: [1, 1, 9, 1], stroke: black, lineWidth: 0.4 },
      8 * 0.4 + Math.PI * 0.2 ** 2,
    ],
    [
      'cells',
      { kind: 'cells', x: 0, y: 0, size: 2, columns: 2, cells: [0, 1, 1, 0], colours: [null, black] },
      8,
    ],
    ['letter', { kind: 'text', x: 2, y: 5, size: 5, text: 'I', fill: black }, dotsOf('I').length * 0.25],
  ])('a %s has its area', (_, shape, area) => {
    expect(areaOf(board(shape))).toBeCloseTo(area, 0);
    expect(Math.abs(areaOf(board(shape)) / area - 1)).toBeLessThan(0.03);
  });

  test('it is as large as it fits, in the middle, and what comes later lies above', () => {
    const paint = createBoardPainter(40, 20, false);
    const pixels = paint({
      width: 1,
      height: 1,
      background: '#00ff00',
      shapes: [
        { kind: 'rectangle', x: 0, y: 0, width: 1, height: 1, fill: '#ff0000' },
        { kind: 'rectangle', x: 0.5, y: 0, width: 0.5, height: 1, fill: '#0000ff80' },
      ],
    });
    const at = (x: number, y: number): number[] => [
      ...pixels.subarray(3 * (y * 40 + x), 3 * (y * 40 + x) + 3),
    ];
    expect(at(9, 10)).toEqual([255, 255, 255]);
    expect(at(12, 10)).toEqual([255, 0, 0]);
    expect(at(25, 10)).toEqual([127, 0, 128]);
    expect(at(31, 10)).toEqual([255, 255, 255]);
  });

  test('every letter of a label has dots of its own', () => {
    const seen = new Map<string, string>();
    for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?-+=*/%()[]<>#&') {
      const dots = JSON.stringify(dotsOf(letter));
      expect(seen.get(dots), letter).toBeUndefined();
      seen.set(dots, letter);
      for (const [column, row] of dotsOf(letter)) expect([column < 5, row < 7]).toEqual([true, true]);
    }
    expect(dotsOf(' ')).toEqual([]);
    expect(dotsOf('a')).toEqual(dotsOf('A'));
  });
});

describe('what is refused, by name', () => {
  test.each<[object, RegExp]>([
    [{ width: 0, height: 1, shapes: [] }, /width is 0, not a number above 0/],
    [{ width: 1, height: 1, shapes: [], colour: 'red' }, /colour is unknown/],
    [
      { ...board(), shapes: [{ kind: 'square' }] },
      /shapes\[0\]\.kind is "square".*rectangle, circle, line, text, cells/,
    ],
    [{ ...board(), shapes: [{ kind: 'circle', x: 1, y: 1 }] }, /shapes\[0\]\.radius is missing/],
    [{ ...board(), shapes: [{ kind: 'circle', x: 1, y: 1, radius: Number.NaN }] }, /radius is NaN/],
    [
      { ...board(), shapes: [{ kind: 'circle', x: 1, y: 1, radius: 1, fill: 'mauve' }] },
      /fill is "mauve": use #rrggbb, or black/,
    ],
    [{ ...board(), shapes: [{ kind: 'line', points: [1, 2, 3], stroke: 'red' }] }, /points has 3 numbers/],
    [
      {
        ...board(),
        shapes: [{ kind: 'cells', x: 0, y: 0, size: 1, columns: 1, cells: [2], colours: ['red'] }],
      },
      /cells\[0\] is 2, not an index of its 1 colours/,
    ],
    [
      { ...board(), shapes: Array(drawingLimits.shapes + 1).fill({ kind: 'circle', x: 0, y: 0, radius: 1 }) },
      /2001 parts: at most 2000/,
    ],
  ])('%o', (drawing, says) => {
    expect(() => parseDrawing(drawing)).toThrow(says);
  });

  test('arrays of numbers may be typed ones, and come out plain', () => {
    const cells = Uint8Array.of(0, 1);
    const drawing = {
      ...board(),
      shapes: [{ kind: 'cells', x: 0, y: 0, size: 1, columns: 2, cells, colours: [null, 'red'] }],
    };
    expect((parseDrawing(drawing).shapes[0] as { cells: unknown }).cells).toEqual([0, 1]);
  });
});

describe('replays', () => {
  const replay = boardReplay(64);
  const drawings = replay.drawings!;

  test('hold a drawing a frame', () => {
    const bytes = encodeReplay(replay);
    expect(decodeReplay(bytes)).toEqual(replay);
    expect(replayHeader(bytes, bytes.length).drawn).toBe(true);
  });

  test('are refused where a drawing is missing or the file was cut', () => {
    expect(() => encodeReplay({ ...replay, drawings: drawings.slice(1) })).toThrow(/3 drawings for 4 frames/);
    const bytes = encodeReplay(replay);
    expect(() => decodeReplay(bytes.subarray(0, bytes.length - 1))).toThrow(/cut off or changed/);
    bytes[bytes.length - 1] = 0x20;
    expect(() => decodeReplay(bytes)).toThrow(/drawings cannot be read/);
  });
});
