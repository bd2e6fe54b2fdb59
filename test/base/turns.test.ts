/** A Ctrl-C is an event: it is heard where long work gives events a turn. */
import { afterAll, expect, test } from 'vitest';
import { giveTurn } from '../../src/base/turns.ts';
import { Graph } from '../../src/engine/index.ts';
import { ProgramCache } from '../../src/lm/index.ts';

const programs = new ProgramCache({});
afterAll(() => programs.dispose());

/** As long as nothing may take without a turn, and longer. */
function work(): void {
  const until = performance.now() + 60;
  while (performance.now() < until);
}

const makeGraph = (): Graph => {
  const graph = new Graph();
  graph.output('y', graph.input('x', [1]));
  return graph;
};

test.each([
  ['by itself', giveTurn],
  ['between the programs of a language model', () => programs.get('same', makeGraph)],
])('events have a turn %s, after long work alone', async (_, step) => {
  await step();
  let heard = false;
  setImmediate(() => {
    heard = true;
  });
  work();
  await step();
  expect(heard).toBe(true);
  // Nothing is waited for where nothing took long.
  let late = false;
  setImmediate(() => {
    late = true;
  });
  await giveTurn();
  expect(late).toBe(false);
});
