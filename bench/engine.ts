/** The engine: one PPO update as one program, a GPT's training step, compile times, memory. */
import { compile, type Program, sizeOf, type TypedArray } from '../src/engine/index.ts';
import { compileWasm } from '../src/engine/wasm/program.ts';
import { gpt } from '../src/nn/index.ts';
import { Rng } from '../src/random/index.ts';
import { gptProductsOnly, gptStep } from './gpt-step.ts';
import { machine, report, round, runInto, timeInTurns } from './measure.ts';
import { columnsOf, layoutOf, matrixProductsOnly, ppoUpdate, timed as sizes, stepsOf } from './ppo-update.ts';

const layout = layoutOf(sizes);
const steps = stepsOf(sizes);

export async function run(): Promise<void> {
  report({ bench: 'engine', ...machine() });
  await benchPpo();
  await benchGpt();
}

async function benchPpo(): Promise<void> {
  const start = performance.now();
  const graph = ppoUpdate(sizes);
  const built = performance.now();
  const update = await compile(graph, { checkFeeds: false });
  const compiled = performance.now();
  report({
    name: 'ppo-update-compile',
    build_ms: round(built - start),
    compile_ms: round(compiled - built),
    nodes_per_minibatch: update.bodyNodeCounts[0],
    nodes: update.nodeCount,
    target_compile_ms: 300,
    target_nodes_per_minibatch: 150,
  });

  const rng = new Rng(1);
  const feeds = ppoFeeds(rng);
  const products = await compile(matrixProductsOnly(sizes), { checkFeeds: false });
  const begun = performance.now();
  const wasm = compileWasm(graph);
  const wasmCompileMs = performance.now() - begun;
  const wasmProducts = compileWasm(matrixProductsOnly(sizes));
  const [updateMs, floorMs, wasmMs, wasmFloorMs] = timeInTurns(25, [
    runInto(update, feeds),
    runInto(products, randomFeeds(products, rng, 0.1)),
    runInto(wasm, feeds),
    runInto(wasmProducts, randomFeeds(wasmProducts, rng, 0.1)),
  ]);
  report({
    name: 'ppo-update-webassembly',
    compile_ms: round(wasmCompileMs),
    steps_per_minibatch: wasm.bodyNodeCounts[0],
    us_per_minibatch: round((wasmMs / steps) * 1000, 1),
    own_products_us_per_minibatch: round((wasmFloorMs / steps) * 1000, 1),
    ratio_to_floor: round(wasmMs / floorMs),
    target_ratio_to_floor: 2.2,
  });
  report({
    name: 'ppo-update',
    ...sizes,
    parameters: layout.size,
    update_ms: round(updateMs),
    us_per_minibatch: round((updateMs / steps) * 1000, 1),
    floor_us_per_minibatch: round((floorMs / steps) * 1000, 1),
    ratio_to_floor: round(updateMs / floorMs),
    target_ratio_to_floor: 3,
  });
  products.dispose();

  const runs = 1000;
  const again = runInto(update, feeds);
  // The process reaches its size when the garbage collector has found its rhythm.
  for (let i = 0; i < 300; i++) again();
  const before = process.memoryUsage.rss();
  for (let i = 0; i < runs; i++) again();
  const after = process.memoryUsage.rss();
  report({
    name: 'ppo-update-memory',
    runs,
    rss_before_mb: mb(before),
    rss_after_mb: mb(after),
    growth_mb: mb(after - before),
  });
  update.dispose();
}

async function benchGpt(): Promise<void> {
  const options = { vocabulary: 512, context: 128, layers: 4, width: 256, heads: 8 };
  const [batch, length] = [8, 128];
  const model = gpt(options);
  for (const threads of [1, 2]) {
    const start = performance.now();
    const step = await compile(gptStep(options, batch, length), { threads, checkFeeds: false });
    const compileMs = performance.now() - start;
    const products = await compile(gptProductsOnly(options, batch, length), { threads, checkFeeds: false });
    const rng = new Rng(2);
    const feeds = randomFeeds(step, rng, 0);
    for (const { name, shape, init } of model.specs) init(rng, shape, feeds[name] as Float32Array);
    for (const name of ['tokens', 'targets']) {
      feeds[name] = BigInt64Array.from(feeds[name] as BigInt64Array, () =>
        BigInt(rng.integer(options.vocabulary)),
      );
    }
    (feeds.learningRate as Float32Array)[0] = 1e-3;
    (feeds.step as Float32Array)[0] = 1;
    const tasks = [runInto(step, feeds), runInto(products, randomFeeds(products, rng, 0.1))];
    const [stepMs, floorMs] = timeInTurns(9, tasks);
    report({
      name: 'gpt-step',
      ...options,
      batch,
      tokens: length,
      parameters: model.specs.reduce((sum, { shape }) => sum + sizeOf(shape), 0),
      threads,
      nodes: step.nodeCount,
      compile_ms: round(compileMs),
      step_ms: round(stepMs, 1),
      tokens_per_second: Math.round((batch * length * 1000) / stepMs),
      floor_ms: round(floorMs, 1),
      ratio_to_floor: round(stepMs / floorMs),
      target_ratio_to_floor: 2,
    });
    step.dispose();
    products.dispose();
  }
}

/** A rollout of noise: what is timed does not depend on the values. */
function ppoFeeds(rng: Rng): Record<string, TypedArray> {
  const width = columnsOf(sizes).reduce((a, b) => a + b, 0);
  const rollout = new Float32Array(sizes.samples * width);
  rng.fillNormal(rollout);
  const order = new BigInt64Array(steps * sizes.batch);
  for (let epoch = 0; epoch < sizes.epochs; epoch++) {
    rng.permutation(sizes.samples).forEach((row, i) => {
      order[epoch * sizes.samples + i] = BigInt(row);
    });
  }
  return {
    rollout,
    order,
    oldLogStd: new Float32Array(sizes.action),
    weights: layout.initialise(rng),
    m: new Float32Array(layout.size),
    v: new Float32Array(layout.size),
    stepsDone: Float32Array.of(0),
    learningRate: Float32Array.of(3e-4),
    // Noise has a large KL; the stop is computed, but must not happen.
    klLimit: Float32Array.of(1e9),
  };
}

function randomFeeds(program: Program, rng: Rng, std: number): Record<string, TypedArray> {
  const feeds: Record<string, TypedArray> = {};
  for (const { name, shape, dtype } of program.inputs) {
    if (dtype === 'int64') feeds[name] = new BigInt64Array(sizeOf(shape));
    else feeds[name] = new Float32Array(sizeOf(shape)).map(() => (std ? std * rng.normal() : 0));
  }
  return feeds;
}

const mb = (bytes: number): number => round(bytes / 2 ** 20, 1);
