/**
 * How numbers, steps, shares and times are written on the page: the one place for it. Short, in the same width where they
 * change, and one way for each: 1.2×10⁻⁵ on an axis as in a readout, `3 min 05 s`, `25 min ago`, `95%`, 1B for a milliard.
 */

const superscripts = new Map([...'0123456789-'].map((c, i) => [c, [...'⁰¹²³⁴⁵⁶⁷⁸⁹⁻'][i]]));

/** A value as in a readout: four significant digits, `1.2×10⁻⁵` when very small or large. */
export function formatValue(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return scientific(value, 2);
  if (size >= 1000) return minus(group(value.toFixed(size >= 1e5 ? 0 : 1)));
  const digits = size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : size >= 0.1 ? 4 : size >= 0.01 ? 4 : 5;
  return minus(value.toFixed(digits));
}

function scientific(value: number, digits: number): string {
  const [head, tail] = value.toExponential(digits).split('e') as [string, string];
  const power = [...tail.replace('+', '')].map(c => superscripts.get(c) ?? c).join('');
  return `${minus(head)}×10${power}`;
}

const minus = (text: string) => text.replace('-', '−');

function group(text: string): string {
  const [whole, part] = text.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return part === undefined || /^0+$/.test(part) ? grouped : `${grouped}.${part}`;
}

/** A setting or a limit as one would type it: `0.02`, not `0.0200`. */
export function formatSetting(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return minus(String(Number(value.toPrecision(6))));
}

/** A count in full, with commas as in the doctor's sentences. */
export function formatCount(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return minus(group(Math.round(value).toFixed(0)));
}

/** A count in at most five characters: `1.25M`. */
export function formatShort(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  const units: [number, string][] = [
    [1e12, 'T'],
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  for (const [unit, name] of units) {
    if (size >= unit * 0.99995) return minus(trim((value / unit).toPrecision(3)) + name);
  }
  return minus(trim(size >= 1 || size === 0 ? value.toPrecision(3) : value.toPrecision(2)));
}

const trim = (text: string) =>
  text.includes('e') ? String(Number(text)) : text.includes('.') ? text.replace(/\.?0+$/, '') : text;

/** An axis label of a value: as short as telling it from its neighbours allows. */
export function formatTick(value: number, step: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-3) {
    const digits = step > 0 ? Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) : 0;
    const text = scientific(value, Math.min(6, Math.max(0, digits))).replace(/(\.\d*?)0+×/, '$1×');
    return text.replace('.×', '×').replace(/^(−?)1×/, '$1');
  }
  if (size >= 1000) {
    const [unit, name] = size >= 1e9 ? [1e9, 'B'] : size >= 1e6 ? [1e6, 'M'] : [1e3, 'k'];
    return minus(trimZeros((value / unit).toFixed(decimals(step / unit))) + name);
  }
  return minus(trimZeros(value.toFixed(decimals(step))));
}

const trimZeros = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

function decimals(step: number): number {
  if (!(step > 0) || step >= 1) return step >= 1 && Number.isInteger(step) ? 0 : 2;
  return Math.min(8, Math.ceil(-Math.log10(step) + 1e-9) + (mantissa(step) % 1 === 0 ? 0 : 1));
}

function mantissa(step: number): number {
  return Math.round((step / 10 ** Math.floor(Math.log10(step) + 1e-9)) * 1e6) / 1e6;
}

/** A length of time: `3 h 05 min`. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86_400)} d ${two(Math.floor((s % 86_400) / 3600))} h`;
}

const two = (n: number) => String(n).padStart(2, '0');

/** A length of time, coarse so that it seldom changes: `25 min`. */
export function formatSpan(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  const s = Math.max(0, ms / 1000);
  if (s < 60) return `${Math.floor(s / 10) * 10} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  if (s < 86_400 * 60) return `${Math.floor(s / 86_400)} d`;
  return `${Math.floor(s / 86_400 / 30)} months`;
}

/** How long ago: `25 min ago`. */
export function formatAge(then: number | null | undefined, now: number): string {
  if (then === null || then === undefined || !Number.isFinite(then)) return '–';
  return now - then < 10_000 ? 'now' : `${formatSpan(now - then)} ago`;
}

/** A moment by the clock and the calendar: `2026-01-05 14:03:22`. */
export function formatDate(then: number | null | undefined): string {
  if (then === null || then === undefined || !Number.isFinite(then)) return '–';
  const at = new Date(then);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`;
}

/** A moment on the clock, `14:03:22`; of another day with that. */
export function formatMoment(then: number, now: number): string {
  const text = formatDate(then);
  return new Date(then).toDateString() === new Date(now).toDateString() ? text.slice(11) : text;
}

/** A share of one: `95%`. */
export function formatPercent(share: number): string {
  return `${Math.round(100 * share)}%`;
}

/** Bytes as people read them. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A stable code as words: `learning-rate-too-high` → `learning rate too high`. */
export function words(code: string): string {
  return code.replaceAll('-', ' ');
}

/** With a capital letter. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
