/** Random graphs as WebAssembly programs: they have the values that the reference interpreter gives. */
import { describe, expect, it } from 'vitest';
import { evaluate, type Graph } from '../../src/engine/index.ts';
import { liveFrom } from '../../src/engine/live.ts';
import { isLoop } from '../../src/engine/ops/loop.ts';
import { compileWasm, wasmRefusal } from '../../src/engine/wasm/program.ts';
import { Rng } from '../../src/random/index.ts';
import { expectClose, scale, seed } from './support/check.ts';
import { type RandomGraph, randomGraph } from './support/random-graphs.ts';

/** Operators that the graphs are meant to have; one that is refused fails the test. */
const operators = [
  ...['reshape', 'split', 'slice', 'transpose', 'pad', 'concat', 'expand', 'stopGradient'],
  ...['add', 'sub', 'mul', 'neg', 'min', 'max', 'tanh', 'sigmoid', 'relu'],
  ...['where', 'less', 'greater', 'and', 'not', 'cast'],
  ...['reduceSum', 'reduceMax', 'l2Norm', 'softmax'],
  ...['matmul', 'linear', 'gather', 'loop'],
];

/** The operators that a graph's outputs need, by name, those in a loop with 'loop' before it: 'loop loop tanh'. */
function operatorsOf(graph: Graph): string[] {
  const live = liveFrom(graph.outputs.values());
  const namesIn = (within: Graph): string[] =>
    live
      .nodesOf(within)
      .flatMap(node => [
        node.op.name,
        ...(isLoop(node) ? namesIn(node.attrs.body).map(name => `loop ${name}`) : []),
      ]);
  return namesIn(graph);
}

/** Both ways agree; the program is run again over what its first run left in memory. */
function compare({ graph, feeds }: RandomGraph, what: string): void {
  const expected = evaluate(graph, feeds);
  const program = compileWasm(graph);
  const given = Object.fromEntries(program.inputs.map(({ name }) => [name, feeds[name]]));
  for (const run of ['first', 'second']) {
    const actual = program.run(given);
    for (const { name, dtype } of program.outputs) {
      const tolerance = dtype === 'float32' ? 2e-4 : 0;
      expectClose(`${what}, ${run} run, output ${name}`, actual[name], expected[name].data, tolerance);
    }
  }
}

describe('random graphs', () => {
  it('are computed as the reference interpreter does, on a second run too', () => {
    const rngs = new Rng(seed).split(300 * scale);
    const seen = new Map<string, number>();
    rngs.forEach((rng, i) => {
      const what = `graph ${i} of KEEL_TEST_SEED=${seed}`;
      const drawn = randomGraph(rng);
      expect(wasmRefusal(drawn.graph), `${what} is refused`).toBeUndefined();
      compare(drawn, what);
      for (const name of new Set(operatorsOf(drawn.graph))) seen.set(name, (seen.get(name) ?? 0) + 1);
    });
    expect(operators.filter(name => !seen.has(name) && !seen.has(`loop ${name}`))).toEqual([]);
    expect(seen.get('loop')).toBeGreaterThan(rngs.length / 4);
    expect(seen.get('loop loop')).toBeGreaterThan(rngs.length / 20);
  });
});
