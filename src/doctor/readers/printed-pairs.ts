/** Lines of pairs that people print themselves, and blocks of such lines, kept until it is known that there is nothing better. */
import { blockCell, fewestPairs, kindOfPairs, pairCells } from './console-lines.ts';
import type { Cells } from './printed-records.ts';

/** Lines beyond this many are left out: a log that people print themselves is shorter. */
export const mostPairLines = 200_000;

/** Keeps lines of pairs, and blocks of such lines, until it is known that there is nothing better. */
export function pairsKept(): { line(text: string): void; rows(): Cells[] } {
  const lines: {
    readonly cells: Cells;
    readonly kind: string;
    readonly opens: boolean;
    readonly alone: boolean;
  }[] = [];
  const kinds = new Map<string, number>();
  let blocks = 0;
  return {
    line(text) {
      if (lines.length >= mostPairLines) return;
      const cells = pairCells(text);
      const block = cells === undefined ? blockCell(text) : undefined;
      if (cells === undefined && block === undefined) return;
      if (block?.opens) blocks++;
      const all = cells ?? [block!.cell];
      const kind = block?.opens ? 'opens' : kindOfPairs(all);
      lines.push({ cells: all, kind, opens: block?.opens ?? false, alone: block !== undefined });
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    },
    rows() {
      const rows: Cells[] = [];
      let open: Cells | undefined;
      for (const { cells, kind, opens, alone } of lines) {
        if (kinds.get(kind)! < fewestPairs) continue;
        if (opens && blocks >= fewestPairs) {
          open = [...cells];
          rows.push(open);
        } else if (alone) {
          // Outside of a block, or again: of no row.
          if (open !== undefined && !open.some(([name]) => name === cells[0][0])) open.push(...cells);
        } else if (open !== undefined && !cells.some(([name]) => open!.some(([known]) => known === name)))
          open.push(...cells);
        else {
          open = undefined;
          rows.push(cells);
        }
      }
      return rows.filter(row => row.length > 1);
    },
  };
}
