/** Tables of a pandas frame as it is printed: names, then rows that begin with their number. */
import { isStepName } from '../counters.ts';
import { missing, readNumber } from './numbers.ts';
import type { Cells } from './printed-records.ts';
import { ofTraining } from './training-words.ts';

const mostNames = 64;
const longest = 1000;

/** Gives the cells of each row of a table, and nothing for other lines. */
export function frameWatch(): (line: string) => Cells | undefined {
  let names: readonly string[] | undefined;
  return line => {
    if (line.length > longest) return undefined;
    const fields = line.trim().split(/\s+/);
    if (names !== undefined && fields.length === names.length + 1 && /^\d{1,9}$/.test(fields[0])) {
      const cells = fields.slice(1).map((field, i): [string, string] => [names![i], field]);
      if (
        cells.every(([, field]) => {
          const cell = readNumber(field);
          return typeof cell === 'number' || cell === missing;
        })
      )
        return cells;
    }
    // Rows that were left out.
    if (names !== undefined && fields.every(field => field === '..' || field === '...')) return undefined;
    names = isHeader(fields) ? fields : undefined;
    return undefined;
  };
}

const isHeader = (fields: readonly string[]): boolean =>
  fields.length > 1 &&
  fields.length <= mostNames &&
  fields.every(field => /^[A-Za-z_][\w./@-]*$/.test(field)) &&
  fields.some(field => ofTraining.test(field)) &&
  (fields.length > 2 || fields.some(isStepName));
