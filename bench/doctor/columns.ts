/** Rows as columns of few digits, which are small once compressed; what is not finite is text, since JSON has no word for it. */
export type Cell = number | string | null;

export type Columns = Readonly<Record<string, readonly Cell[]>>;

/** A column for each name, without times. */
export function columnsOf(rows: readonly Readonly<Record<string, number>>[], digits = 5): Columns {
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))].filter(name => !name.startsWith('time/'));
  return Object.fromEntries(names.map(name => [name, rows.map(row => cell(row[name], digits))]));
}

/** The rows that these columns were. */
export function rowsOf(columns: Columns): Record<string, number>[] {
  const count = Math.max(0, ...Object.values(columns).map(values => values.length));
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(
      Object.entries(columns)
        .filter(([, values]) => values[i] !== null)
        .map(([name, values]) => [name, Number(values[i])]),
    ),
  );
}

/** A replacer of JSON. */
export const finiteOrText = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;

/** A number of few digits. */
export function cell(value: number | undefined, digits = 5): Cell {
  if (value === undefined) return null;
  return Number.isFinite(value) ? Number(value.toPrecision(digits)) : String(value);
}
