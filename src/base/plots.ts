/** Plots for terminals, of block characters. */

const eighths = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/** Values as one line of so many columns; each shows the largest of its share of them. `top` is a full block. */
export function sparkline(values: readonly number[], columns: number, top = Math.max(...values)): string {
  const width = Math.min(columns, values.length);
  return Array.from({ length: width }, (_, i) => {
    const from = Math.floor((i * values.length) / width);
    const to = Math.max(from + 1, Math.floor(((i + 1) * values.length) / width));
    const value = Math.max(...values.slice(from, to));
    const level = top > 0 ? Math.ceil((value / top) * 8) : 0;
    return eighths[Math.min(8, Math.max(0, level))];
  }).join('');
}

/** A bar of at most so many columns, to an eighth of one. */
export function bar(share: number, columns: number): string {
  const parts = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
  const length = Math.max(0, Math.min(1, share)) * columns;
  const whole = Math.floor(length);
  return '█'.repeat(whole) + (whole < columns ? parts[Math.floor((length - whole) * 8)] : '');
}
