/** Collects one run from whatever a reader finds, in bounded memory: every limit is here, and says when it was hit. */
import type { Blank, Format, RawRun } from '../raw-run.ts';
import { defaultCapacity, type Series, SeriesBuilder } from '../series.ts';

/** What a run may hold. The defaults keep the largest run under some two hundred megabytes. */
export interface Limits {
  /** Names of series. */
  readonly series: number;
  /** Points of one series. */
  readonly capacity: number;
  /** Points of all series together: beyond it each series gets less. */
  readonly points: number;
  readonly settings: number;
  readonly texts: number;
}

export const defaultLimits: Limits = {
  series: 4096,
  capacity: defaultCapacity,
  points: 3_000_000,
  settings: 4096,
  texts: 256,
};

const longestName = 512;
const longestSetting = 2000;
const longestText = 4000;
const mostNotes = 50;
const mostDropped = 10_000;
/** No series is merged further than this to save memory: `series` times this is a bound too. */
const leastCapacity = 256;

export type Setting = string | number | boolean | null;

const asNote = (sentence: string): string => cut(sentence.replace(/\s+/g, ' '), 500);

export class RunBuilder {
  readonly path: string;
  format: Format;
  axis: RawRun['axis'];
  unfinished = false;
  readonly files = new Set<string>();
  readonly series = new Map<string, SeriesBuilder>();
  readonly config = new Map<string, Setting>();
  readonly texts = new Map<string, string>();
  readonly restarts = new Set<number>();
  readonly blanks = new Map<string, Blank>();
  readonly #notes = new Set<string>();
  readonly #damage = new Set<string>();
  readonly #limits: Limits;
  readonly #droppedNames = new Set<string>();
  #droppedNotes = 0;
  #capacity: number;
  #untilCheck: number;

  constructor(path: string, format: Format, axis: RawRun['axis'], limits: Limits = defaultLimits) {
    this.path = path;
    this.format = format;
    this.axis = axis;
    this.#limits = limits;
    this.#capacity = limits.capacity;
    this.#untilCheck = limits.points;
  }

  /** The series of this name; undefined when there are too many, which `finish` tells. */
  of(name: string): SeriesBuilder | undefined {
    const known = this.series.get(name);
    if (known !== undefined) return known;
    if (this.series.size >= this.#limits.series || name.length > longestName) {
      if (this.#droppedNames.size < mostDropped) this.#droppedNames.add(name.slice(0, 80));
      return undefined;
    }
    const made = new SeriesBuilder(this.#capacity);
    this.series.set(name, made);
    return made;
  }

  number(name: string, x: number, value: number, wallTime?: number): void {
    this.of(name)?.append(x, value, wallTime);
    this.counted(1);
  }

  /** Says that points were appended, so that all series together stay within the limit. */
  counted(points: number): void {
    this.#untilCheck -= points;
    if (this.#untilCheck > 0) return;
    let total = 0;
    for (const one of this.series.values()) total += one.size;
    while (total > this.#limits.points && this.#capacity > leastCapacity) {
      this.#capacity = Math.max(leastCapacity, this.#capacity >> 1);
      total = 0;
      for (const one of this.series.values()) {
        one.limit(this.#capacity);
        total += one.size;
      }
    }
    // Arrays grow by doubling: room for as many points may not be there, but twice as many is a bound.
    this.#untilCheck = Math.max(this.#limits.points - total, this.#limits.points >> 3);
  }

  setting(name: string, value: Setting): void {
    if (name === '' || name.length > longestName) return;
    if (!this.config.has(name) && this.config.size >= this.#limits.settings) {
      this.note(`more than ${this.#limits.settings} settings: the rest is left out`);
      return;
    }
    this.config.set(name, typeof value === 'string' ? cut(value, longestSetting) : value);
  }

  text(name: string, value: string): void {
    if (name.length > longestName) return;
    if (!this.texts.has(name) && this.texts.size >= this.#limits.texts) return;
    this.texts.set(name, cut(value, longestText));
  }

  note(sentence: string): void {
    if (this.#notes.size >= mostNotes) this.#droppedNotes++;
    else this.#notes.add(asNote(sentence));
  }

  /** A note about lines or records that could not be read. */
  damage(sentence: string): void {
    this.note(sentence);
    const note = asNote(sentence);
    if (this.#notes.has(note)) this.#damage.add(note);
  }

  get hasNumbers(): boolean {
    for (const one of this.series.values()) if (one.length > 0) return true;
    return false;
  }

  finish(): RawRun {
    const series = new Map<string, Series>();
    let merged = 0;
    let most = 0;
    for (const [name, builder] of this.series) {
      if (builder.length === 0) continue;
      series.set(name, builder.build());
      if (builder.count > builder.length) merged++;
      most = Math.max(most, builder.count);
    }
    if (merged > 0) {
      this.note(
        `${merged} of ${series.size} series have more than ${this.#capacity} points (up to ${most}): neighbours are merged, keeping mean, smallest and largest`,
      );
    }
    if (this.#droppedNames.size > 0) {
      const some = [...this.#droppedNames].slice(0, 3).join(', ');
      this.note(
        `more than ${this.#limits.series} names of series, or names too long: ${this.#droppedNames.size} or more are left out, such as ${some}`,
      );
    }
    if (this.#droppedNotes > 0) this.#notes.add(`${this.#droppedNotes} further notes are left out`);
    return {
      path: this.path,
      format: this.format,
      files: [...this.files],
      axis: this.axis,
      series,
      config: this.config,
      texts: this.texts,
      ...(this.blanks.size === 0 ? {} : { blanks: this.blanks }),
      restarts: [...this.restarts].sort((a, b) => a - b),
      notes: [...this.#notes],
      ...(this.#damage.size === 0 ? {} : { damage: [...this.#damage] }),
      unfinished: this.unfinished,
    };
  }
}

/** Shortened so that nobody takes it for the whole. A copy: a slice would keep the whole text in memory. */
function cut(text: string, most: number): string {
  return text.length <= most ? text : `${Buffer.from(text.slice(0, most - 1)).toString('utf8')}…`;
}
