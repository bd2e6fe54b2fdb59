/** Round numbers along an axis. */

/** About `count` round numbers between two ends. */
export function niceTicks(from: number, to: number, count: number): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999)!;
  const ticks: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12) + 1e-300; i++)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Powers of ten between two ends; if there are fewer than four, also 2 and 5 times them, or else round numbers. */
export function decades(from: number, to: number): number[] {
  const ticks = (factors: number[]) => {
    const found: number[] = [];
    for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); e++) {
      for (const f of factors) {
        const v = Number(`${f}e${e}`);
        if (v >= from && v <= to) found.push(v);
      }
    }
    return found;
  };
  const few = ticks([1]);
  if (few.length >= 4) return few;
  const more = ticks([1, 2, 5]);
  return more.length >= 3 ? more : niceTicks(from, to, 4);
}
