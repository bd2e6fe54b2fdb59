/**
 * Tells the trainings apart that one output has: those of several that learn, by their names, and those that follow one
 * another. A row begins another where its counters are back at their beginning, and nothing that a learner counts through
 * its life goes on; a log that goes back to a checkpoint is the same training.
 */
import { isStepName, lifeNames } from '../counters.ts';

/** Rows that a training has before another can begin: a step within episodes begins anew all the time. */
const fewestRows = 3;
/** A counter begins anew at no more than this share of where it was, and this many times its first value. */
const shareOfLast = 0.25;
const timesFirst = 4;
const mostTrainings = 256;

/** The trainings of an output: which row is of which, and what they are called. */
export interface Trainings {
  readonly rows: readonly number[];
  readonly names: readonly string[];
  /** Whether what is said of someone is said of a training. */
  isOf(who: string, training: number): boolean;
}

interface Training {
  readonly number: number;
  /** Where its rows begin, and what it would go on with were it no other. */
  readonly from: number;
  readonly before: Training | undefined;
  rows: number;
  readonly first: Map<string, number>;
  readonly last: Map<string, number>;
}

export class TrainingsWatch implements Trainings {
  readonly rows: number[] = [];
  readonly #current = new Map<string, Training>();
  readonly #owners: string[] = [];

  add(row: ReadonlyMap<string, number>, who = ''): void {
    let training = this.#current.get(who) ?? this.#begin(who, undefined);
    if (training.rows >= fewestRows && this.#owners.length < mostTrainings && beginsAnew(row, training))
      training = this.#begin(who, training);
    else if (goesOn(row, training) && training.number === this.#owners.length - 1)
      training = this.#join(who, training);
    training.rows++;
    for (const [name, value] of row) {
      if (!isStepName(name) && !lifeNames.includes(name)) continue;
      if (!training.first.has(name)) training.first.set(name, value);
      training.last.set(name, value);
    }
    this.rows.push(training.number);
  }

  get names(): readonly string[] {
    return this.#owners.map((who, i) => {
      const nth = this.#owners.slice(0, i + 1).filter(other => other === who).length;
      if (who === '') return `training ${nth}`;
      return nth === 1 ? who : `${who} ${nth}`;
    });
  }

  isOf(who: string, training: number): boolean {
    const owner = this.#owners[training];
    return owner === undefined || owner === '' || owner === who;
  }

  #begin(who: string, before: Training | undefined): Training {
    const training = {
      number: this.#owners.length,
      from: this.rows.length,
      before,
      rows: 0,
      first: new Map(),
      last: new Map(),
    };
    this.#owners.push(who);
    this.#current.set(who, training);
    return training;
  }

  /** It was no other training after all. */
  #join(who: string, { number, from, before }: Training): Training {
    for (let i = from; i < this.rows.length; i++) if (this.rows[i] === number) this.rows[i] = before!.number;
    this.#owners.pop();
    this.#current.set(who, before!);
    return before!;
  }
}

function beginsAnew(row: ReadonlyMap<string, number>, { first, last }: Training): boolean {
  let anew = false;
  for (const [name, value] of row) {
    const [begun, before] = [first.get(name), last.get(name)];
    if (begun === undefined || before === undefined) continue;
    // Algorithms collect rollouts of different sizes, so that their first rows are not at one step.
    if (value > before * shareOfLast || value > begun * timesFirst) return false;
    anew = true;
  }
  return anew;
}

/** Whether a row has a count of the learner's life that goes on from the training before. */
function goesOn(row: ReadonlyMap<string, number>, { before, first }: Training): boolean {
  if (before === undefined) return false;
  return lifeNames.some(name => {
    const [value, earlier] = [row.get(name), before.last.get(name)];
    return value !== undefined && earlier !== undefined && !first.has(name) && value > earlier;
  });
}
