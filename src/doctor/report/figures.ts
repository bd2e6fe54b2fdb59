/** Numbers as people read them. */

/** Few digits, whatever the size: `0.0061`, `-212`, `1.2e+7`. */
export function amount(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1).replace('.0e', 'e');
  if (size >= 1000) return whole(value);
  return String(Number(value.toPrecision(3)));
}

/** `1234567` → `1,234,567`: steps, rows, counts. */
export function whole(value: number): string {
  if (!Number.isFinite(value)) return amount(value);
  if (Math.abs(value) >= 1e15) return value.toExponential(2);
  const [digits, rest] = String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toFixed(2))).split(
    '.',
  );
  const grouped = digits!.replaceAll(/\B(?=(\d{3})+$)/g, ',');
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

/** `1 run`, `2 runs`. */
export function counted(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** How sure, in words and as a share: people overrate a bare 0.62. */
export function sureness(confidence: number): string {
  const percent = `${Math.round(100 * Math.min(1, Math.max(0, confidence)))}%`;
  if (confidence >= 0.85) return `almost certain, ${percent}`;
  if (confidence >= 0.65) return `likely, ${percent}`;
  if (confidence >= 0.4) return `plausible, ${percent}`;
  return `a guess, ${percent}`;
}
