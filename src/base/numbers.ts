/** Numbers as people read them. */

/** Few digits in a sentence, whatever the size: `0.0061`, `-212`, `1.2e+7`. */
export function amount(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1).replace('.0e', 'e');
  if (size >= 1000) return whole(value);
  return String(Number(value.toPrecision(3)));
}

/** `1234567` → `1,234,567`, small ones with two decimals: steps, rows, counts. */
export function whole(value: number): string {
  if (!Number.isFinite(value)) return amount(value);
  if (Math.abs(value) >= 1e15) return value.toExponential(2);
  const [digits, rest] = String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toFixed(2))).split(
    '.',
  );
  return rest === undefined ? withCommas(digits) : `${withCommas(digits)}.${rest}`;
}

/** `1 run`, `2 runs`. */
export function counted(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `1234567` → `1,234,567`, without decimals. */
export function grouped(value: number): string {
  return withCommas(Math.round(value).toString());
}

const withCommas = (digits: string): string => digits.replaceAll(/\B(?=(\d{3})+$)/g, ',');

/** `123456` → `123k`: at most five characters. */
export function short(value: number): string {
  for (const [size, letter] of [
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    if (Math.abs(value) < size) continue;
    const scaled = value / size;
    return `${Math.abs(scaled) < 99.95 ? scaled.toFixed(1) : scaled.toFixed(0)}${letter}`;
  }
  return String(Math.round(value));
}

/** Few digits in a column, where the place of the point tells: `0.00612`, `-212.4`, `1.2e+7`. */
export function number(value: number | undefined): string {
  if (value === undefined) return '-';
  if (!Number.isFinite(value) || value === 0) return String(value);
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1);
  if (size >= 100) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return Number(value.toPrecision(3)).toString();
}

/** `75` → `1:15`, `3675` → `1h01m`, days from 100 hours on: at most six characters. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '?';
  const whole = Math.max(0, Math.round(seconds));
  const pad = (n: number): string => String(n).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)}`;
  const hours = Math.floor(whole / 3600);
  return hours < 100 ? `${hours}h${pad(Math.floor(whole / 60) % 60)}m` : `${short(hours / 24)}d`;
}
