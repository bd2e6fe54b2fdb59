/** Tables in HTML, as notebooks keep them: found by hand, in linear time, and nothing of the markup is kept. */

const mostRows = 200_000;
const mostCells = 512;

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': ' ',
  '&amp;': '&',
};

/** The rows of each table, as texts of their cells. */
export function htmlTables(html: string): string[][][] {
  const tables: string[][][] = [];
  // Names of elements are of any case; what the copy is for.
  const lower = html.toLowerCase();
  for (let at = lower.indexOf('<table'); at >= 0; ) {
    const end = lower.indexOf('</table', at);
    const stop = end < 0 ? html.length : end;
    tables.push(rowsOf(html, lower, at, stop));
    at = lower.indexOf('<table', stop);
  }
  return tables;
}

function rowsOf(html: string, lower: string, from: number, to: number): string[][] {
  const rows: string[][] = [];
  for (let at = lower.indexOf('<tr', from); at >= 0 && at < to && rows.length < mostRows; ) {
    const next = lower.indexOf('<tr', at + 3);
    const end = next < 0 || next > to ? to : next;
    const cells: string[] = [];
    for (let cell = at; cells.length < mostCells; ) {
      cell = nextCell(lower, cell + 1, end);
      if (cell < 0) break;
      const open = lower.indexOf('>', cell);
      if (open < 0 || open >= end) break;
      const close = lower.indexOf('</t', open);
      cells.push(plain(html.slice(open + 1, close < 0 || close > end ? end : close)));
      cell = open;
    }
    if (cells.length > 0) rows.push(cells);
    at = next;
  }
  return rows;
}

function nextCell(lower: string, from: number, to: number): number {
  for (let at = lower.indexOf('<t', from); at >= 0 && at < to; at = lower.indexOf('<t', at + 2)) {
    const kind = lower.charCodeAt(at + 2);
    const after = lower.charCodeAt(at + 3);
    if ((kind === 100 || kind === 104) && (after === 62 || after === 32)) return at;
  }
  return -1;
}

const plain = (markup: string): string =>
  markup
    .slice(0, 2000)
    .replace(/<[^<>]{0,500}>/g, '')
    .replace(/&(?:lt|gt|quot|#39|nbsp|amp);/g, entity => entities[entity])
    .trim();
