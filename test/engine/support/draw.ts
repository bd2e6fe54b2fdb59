/** Random shapes and values for one case, drawn through fast-check so that failures shrink and come back. */
import fc, { type GeneratorValue } from 'fast-check';
import type { DType } from '../../../src/engine/index.ts';
import { count } from './naive.ts';

export interface InputSpec {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly values: readonly number[];
}

/** All float values are multiples of 1/128 and so the same in float32. */
export class Draw {
  readonly #gen: GeneratorValue;

  constructor(gen: GeneratorValue) {
    this.#gen = gen;
  }

  int(min: number, max: number): number {
    return this.#gen(fc.integer, { min, max });
  }

  bool(): boolean {
    return this.int(0, 1) === 1;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.int(0, choices.length - 1)];
  }

  list(length: number, min: number, max: number): number[] {
    return this.#gen(fc.array, fc.integer({ min, max }), { minLength: length, maxLength: length });
  }

  shape(minRank: number, maxRank: number, maxSize = 3): number[] {
    return this.list(this.int(minRank, maxRank), 1, maxSize);
  }

  /** A shape that broadcasts to `shape`: outer axes left away, others 1 now and then. */
  narrower(shape: readonly number[]): number[] {
    const kept = shape.slice(this.int(0, 2) === 0 ? this.int(0, shape.length) : 0);
    return kept.map(n => (this.int(0, 3) === 0 ? 1 : n));
  }

  axis(rank: number): number {
    return this.int(-rank, rank - 1);
  }

  /** Some axes, distinct, in any order, some counted from the end; undefined now and then, which means all. */
  axes(rank: number): readonly number[] | undefined {
    if (this.int(0, 3) === 0) return undefined;
    const some = [...Array(rank).keys()].filter(() => this.bool());
    const shown = some.map(axis => (this.bool() ? axis : axis - rank));
    return this.bool() ? shown : shown.reverse();
  }

  floats(shape: readonly number[], min = -2, max = 2): InputSpec {
    const values = this.list(count(shape), Math.ceil(min * 128), Math.floor(max * 128)).map(v => v / 128);
    return { shape, dtype: 'float32', values };
  }

  /** Floats that stay away from 0. */
  nonzero(shape: readonly number[], min = 0.25, max = 2): InputSpec {
    const { values } = this.floats(shape, min, max);
    return { shape, dtype: 'float32', values: values.map(v => (this.bool() ? v : -v)) };
  }

  /** Floats of which no two, of this and of other inputs with other `offset`s, are closer than 1/64, nor any to 0. */
  apart(shape: readonly number[], offset = 1): InputSpec {
    const size = count(shape);
    const order = Array.from({ length: size }, (_, i) => i);
    for (let i = size - 1; i > 0; i--) {
      const j = this.int(0, i);
      [order[i], order[j]] = [order[j], order[i]];
    }
    const spread = order.map(rank => (rank - Math.floor(size / 2)) / 8 + offset / 64);
    return { shape, dtype: 'float32', values: spread };
  }

  ints(shape: readonly number[], min: number, max: number, dtype: 'int32' | 'int64' = 'int64'): InputSpec {
    return { shape, dtype, values: this.list(count(shape), min, max) };
  }

  bools(shape: readonly number[]): InputSpec {
    return { shape, dtype: 'bool', values: this.list(count(shape), 0, 1) };
  }

  /** Any dtype. */
  any(shape: readonly number[], dtype: DType): InputSpec {
    if (dtype === 'float32') return this.floats(shape);
    return dtype === 'bool' ? this.bools(shape) : this.ints(shape, -3, 3, dtype);
  }

  dtype(): DType {
    return this.pick(['float32', 'int32', 'int64', 'bool']);
  }

  indexType(): 'int32' | 'int64' {
    return this.pick(['int32', 'int64']);
  }
}
