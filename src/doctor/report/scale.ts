/** From values to places on an axis, and the values to write beside it. */

/** Between 0 (at `low`) and 1 (at `high`); what lies outside is put at the end. */
export function shareOf(value: number, low: number, high: number, log: boolean): number {
  // Halves, because the distance of two large numbers can be infinite.
  const share = log
    ? (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high) - Math.log(low))
    : (value / 2 - low / 2) / (high / 2 - low / 2);
  return Number.isNaN(share) ? 0.5 : Math.min(1, Math.max(0, share));
}

/** Round values from `low` to `high`: 1, 2 or 5 times a power of ten, about `wanted` of them. */
export function ticks(low: number, high: number, wanted: number): number[] {
  if (!(high > low) || !Number.isFinite(high - low)) return [...new Set([low, high])];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find(factor => factor * power >= 0.75 * rough) ?? 10);
  if (!(step > 0)) return [low, high];
  const first = Math.ceil(low / step - 1e-9);
  const found: number[] = [];
  for (let i = first; i * step <= high + step * 1e-9 && found.length < 2 * wanted + 2; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found.length > 0 ? found : [low, high];
}

/** Powers of ten from `low` to `high`, thinned to about `wanted`. */
export function logTicks(low: number, high: number, wanted: number): number[] {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, wanted)));
  const found: number[] = [];
  for (let power = first; power <= last; power += every) found.push(10 ** power);
  return found.length > 0 ? found.map(value => Number(value.toPrecision(12))) : [low, high];
}
