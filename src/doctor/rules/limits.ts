/** Tables of limits. */

/** What is measured, and the number from which on a rule speaks, or no longer does. */
export type LimitTable = Readonly<Record<string, number>>;

const tables = new Map<string, LimitTable>();

/**
 * A table of limits, by the rule or judgement that it belongs to: what its check and its prose both read. No number that
 * decides anything stands elsewhere (`npm run check:source`), and tests move each of them up and down
 * (test/doctor/rules/limits.test.ts).
 */
export function limitsOf<const T extends LimitTable>(of: string, table: T): T {
  if (tables.has(of)) throw new Error(`${of} has a table of limits already`);
  tables.set(of, table);
  return table;
}

/** Every table there is, once all rules are loaded. */
export const limitTables: ReadonlyMap<string, LimitTable> = tables;
