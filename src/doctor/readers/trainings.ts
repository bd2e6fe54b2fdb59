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

export interface Trainings {
  /** The number of the training that a row belongs to, from 0, in the order in which they begin. */
  of(row: ReadonlyMap<string, number>, who?: string): number;
  isOf(who: string, training: number): boolean;
  /** That of the newest row, and how many there are. */
  readonly now: number;
  readonly count: number;
}

interface Training {
  number: number;
  rows: number;
  readonly first: Map<string, number>;
  readonly last: Map<string, number>;
}

export function trainingsWatch(): Trainings {
  const current = new Map<string, Training>();
  const owners: string[] = [];
  let now = 0;
  const begin = (who: string): Training => {
    const training = { number: owners.length, rows: 0, first: new Map(), last: new Map() };
    owners.push(who);
    current.set(who, training);
    return training;
  };
  return {
    of(row, who = '') {
      let training = current.get(who) ?? begin(who);
      if (training.rows >= fewestRows && owners.length < mostTrainings && beginsAnew(row, training)) training = begin(who);
      training.rows++;
      for (const [name, value] of row) {
        if (!isCounter(name)) continue;
        if (!training.first.has(name)) training.first.set(name, value);
        training.last.set(name, value);
      }
      now = training.number;
      return now;
    },
    isOf: (who, training) => (owners[training] ?? who) === who,
    get now() {
      return now;
    },
    get count() {
      return Math.max(1, owners.length);
    },
  };
}

const isCounter = (name: string): boolean => isStepName(name) || lifeNames.includes(name);

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
