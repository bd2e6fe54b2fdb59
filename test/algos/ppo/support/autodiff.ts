/** Reverse-mode derivatives of float64 scalars: small, slow and plain. Shares nothing with src/engine. */

/** A number that remembers how it was computed. */
export class Value {
  readonly value: number;
  readonly tape: Tape;
  derivative = 0;

  constructor(tape: Tape, value: number) {
    this.tape = tape;
    this.value = value;
  }
}

export type Term = Value | number;

const number = (x: Term): number => (typeof x === 'number' ? x : x.value);

export class Tape {
  readonly #backwards: (() => void)[] = [];

  variable(value: number): Value {
    return new Value(this, value);
  }

  #of(value: number, parts: readonly (readonly [Term, number])[]): Value {
    const out = new Value(this, value);
    this.#backwards.push(() => {
      // A part that is not touched contributes 0 even where its own derivative is infinite.
      if (out.derivative === 0) return;
      for (const [part, slope] of parts)
        if (typeof part !== 'number' && slope !== 0) part.derivative += slope * out.derivative;
    });
    return out;
  }

  add(a: Term, b: Term): Value {
    return this.#of(number(a) + number(b), [
      [a, 1],
      [b, 1],
    ]);
  }

  sub(a: Term, b: Term): Value {
    return this.#of(number(a) - number(b), [
      [a, 1],
      [b, -1],
    ]);
  }

  mul(a: Term, b: Term): Value {
    return this.#of(number(a) * number(b), [
      [a, number(b)],
      [b, number(a)],
    ]);
  }

  div(a: Term, b: Term): Value {
    return this.#of(number(a) / number(b), [
      [a, 1 / number(b)],
      [b, -number(a) / number(b) ** 2],
    ]);
  }

  sum(terms: readonly Term[]): Value {
    return this.#of(
      terms.reduce<number>((sum, t) => sum + number(t), 0),
      terms.map(t => [t, 1] as const),
    );
  }

  /** Σ aᵢ·bᵢ + c */
  dot(a: readonly Term[], b: readonly Term[], c: Term): Value {
    let sum = number(c);
    const parts: [Term, number][] = [[c, 1]];
    for (let i = 0; i < a.length; i++) {
      sum += number(a[i]) * number(b[i]);
      parts.push([a[i], number(b[i])], [b[i], number(a[i])]);
    }
    return this.#of(sum, parts);
  }

  /** Any function of one number, with its slope there. */
  map(a: Term, f: (x: number) => number, slope: (x: number, y: number) => number): Value {
    const y = f(number(a));
    return this.#of(y, [[a, slope(number(a), y)]]);
  }

  exp(a: Term): Value {
    return this.map(a, Math.exp, (_, y) => y);
  }

  log(a: Term): Value {
    return this.map(a, Math.log, x => 1 / x);
  }

  square(a: Term): Value {
    return this.map(
      a,
      x => x * x,
      x => 2 * x,
    );
  }

  /** Within limits; constant outside. */
  clamp(a: Term, low: number, high: number): Value {
    return this.map(
      a,
      x => Math.min(high, Math.max(low, x)),
      x => (x >= low && x <= high ? 1 : 0),
    );
  }

  /** Derivatives of `of` by everything on the tape. */
  backward(of: Value): void {
    of.derivative = 1;
    for (let i = this.#backwards.length - 1; i >= 0; i--) this.#backwards[i]();
  }
}
