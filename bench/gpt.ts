/**
 * Language models: a training step, sampling with and without the cache, and GPT-2 small from a directory.
 *
 * With `KEEL_TORCH_PYTHON`, a Python that has PyTorch, its step is timed in turns with ours. `npm run bench -- gpt small`
 * leaves the 124M parameters out; `steps`, `sampling` and `large` do one part each.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gradientGraph } from '../src/algos/clone/text/graphs.ts';
import { createGrpoTrainer } from '../src/algos/grpo/iteration.ts';
import { grpoSettings } from '../src/algos/grpo/settings.ts';
import { TextPrograms } from '../src/algos/text/programs.ts';
import { compile, Graph, gather } from '../src/engine/index.ts';
import {
  Decoder,
  generate,
  type LanguageModel,
  languageModel,
  loadModel,
  ownTokenizer,
  saveModel,
  shapeFor,
  weightFeeds,
  weightInputs,
} from '../src/lm/index.ts';
import { adamW, type GptOptions, norm } from '../src/nn/index.ts';
import { Rng } from '../src/random/index.ts';
import { resolveSettings } from '../src/settings/resolve.ts';
import { makeTask } from '../src/tasks/index.ts';
import { machine, median, report, round, sum } from './measure.ts';

const models: Record<string, GptOptions> = {
  '3.3M': { vocabulary: 512, context: 128, layers: 4, width: 256, heads: 8 },
  '21M': { vocabulary: 4096, context: 128, layers: 6, width: 512, heads: 8 },
};
const small: GptOptions = { vocabulary: 50_257, context: 1024, layers: 12, width: 768, heads: 12 };
const [batch, length] = [8, 128];
const PARTS: Record<string, readonly string[]> = {
  all: ['steps', 'sampling', 'large'],
  small: ['steps', 'sampling'],
  steps: ['steps'],
  sampling: ['sampling'],
  large: ['large'],
};

export async function run(): Promise<void> {
  const which = process.argv[3] ?? 'all';
  report({ bench: 'gpt', ...machine() });
  const parts = PARTS[which];
  if (!parts) throw new Error(`part '${which}' is unknown: use ${Object.keys(PARTS).join(', ')}`);
  if (parts.includes('steps'))
    for (const name of Object.keys(models)) for (const threads of [1, 2]) await benchStep(name, threads);
  if (parts.includes('sampling')) await benchSampling();
  if (parts.includes('large')) await benchLarge();
}

/** A model of any size with random weights; its tokenizer has as many tokens, whatever they look like. */
function randomModel(options: GptOptions): LanguageModel {
  const first = 0x4e00; // a block of characters that is large enough
  const tokenizer = ownTokenizer(
    String.fromCodePoint(
      ...Array.from({ length: Math.min(options.vocabulary - 2, 20_000) }, (_, i) => first + i),
    ),
  );
  return languageModel(options, tokenizer, { rng: new Rng(1) });
}

async function benchStep(name: string, threads: number): Promise<void> {
  const options = models[name];
  // One token more than is predicted, as PyTorch's loss has it.
  const model = randomModel({ ...options, context: length + 1 });
  const programs = new TextPrograms(model, { threads });
  const rng = new Rng(2);
  const token = (): number => rng.integer(options.vocabulary);
  const sequences = Array.from({ length: batch }, () => ({
    prompt: [token()],
    tokens: Array.from({ length }, token),
  }));
  const shape = shapeFor(sequences, batch, length + 1, { step: 1 });
  const state = {
    weights: model.weights,
    m: new Float32Array(model.layout.size),
    v: new Float32Array(model.layout.size),
  };
  const gradient = new Float32Array(model.layout.size);
  const weights = new Float32Array(batch * length).fill(1 / (batch * length));
  let steps = 0;
  const step = async (): Promise<number> => {
    const start = performance.now();
    await programs.gradient(
      state.weights,
      {
        batch: { sequences, shape, temperature: 1 },
        chosen: sequences.keys(),
        loss: { name: 'clone', graph: gradientGraph },
        columns: { weights },
      },
      gradient,
    );
    const scale = 1 / Math.max(1, norm(gradient));
    adamW(model.layout, state, {
      gradient,
      gradientScale: scale,
      learningRate: 1e-4,
      step: ++steps,
      beta2: 0.95,
      weightDecay: 0.01,
    });
    return performance.now() - start;
  };
  await step();
  const python = process.env.KEEL_TORCH_PYTHON;
  const [ours, theirs]: number[][] = [[], []];
  let [ourCpu, theirCpu] = [0, 0];
  let torch: string | undefined;
  const rounds = name === '3.3M' ? 5 : 3;
  for (let i = 0; i < rounds; i++) {
    const before = process.cpuUsage();
    for (let k = 0; k < 3; k++) ours.push(await step());
    const { user, system } = process.cpuUsage(before);
    ourCpu += (user + system) / 1000;
    if (!python) continue;
    const { vocabulary, layers, width, heads } = options;
    const sizes = [vocabulary, length + 1, layers, width, heads, batch, length, threads, 3].map(String);
    const script = fileURLToPath(new URL('gpt-torch.py', import.meta.url));
    const out = JSON.parse(
      execFileSync(python, [script, ...sizes], { encoding: 'utf8', env: limitedTo(threads) }),
    );
    theirs.push(...out.times_ms);
    theirCpu += out.cpu_ms;
    ({ torch } = out);
  }
  const ms = median(ours);
  report({
    name: `training-step ${name}`,
    parameters: model.layout.size,
    batch,
    length,
    threads,
    step_ms: round(ms, 1),
    cores: round(ourCpu / sum(ours)),
    tokens_per_second: Math.round((1000 * batch * length) / ms),
    ...(theirs.length > 0
      ? {
          torch_ms: round(median(theirs), 1),
          torch_cores: round(theirCpu / sum(theirs)),
          ratio_to_torch: round(median(theirs) / ms),
          torch,
          target_ratio: 1,
        }
      : {}),
  });
  await programs.dispose();
}

/**
 * `torch.set_num_threads` does not reach an OpenBLAS with threads of its own, as Debian's is: unless the environment says
 * otherwise it takes every core.
 */
function limitedTo(threads: number): NodeJS.ProcessEnv {
  const count = String(threads);
  return { ...process.env, OMP_NUM_THREADS: count, OPENBLAS_NUM_THREADS: count, MKL_NUM_THREADS: count };
}

/** 64 sequences of 64 new tokens after prompts of 64: with the cache, and by running everything again for each token. */
async function benchSampling(): Promise<void> {
  const model = randomModel({ ...models['3.3M'] });
  const [sequences, promptLength, newTokens] = [64, 64, 64];
  const rng = new Rng(3);
  const prompts = Array.from({ length: sequences }, () =>
    Array.from({ length: promptLength }, () => 2 + rng.integer(model.options.vocabulary - 2)),
  );
  for (const threads of [1, 2]) {
    const decoder = new Decoder(model, { threads });
    const sample = async (): Promise<{ ms: number; tokens: number }> => {
      const start = performance.now();
      const made = await generate(model, decoder, model.weights, {
        prompts,
        copies: 1,
        maxNewTokens: newTokens,
        temperature: 1,
        topK: 0,
        topP: 1,
        stop: [],
        rng: new Rng(4),
      });
      return {
        ms: performance.now() - start,
        tokens: made.reduce((sum, { tokens }) => sum + tokens.length, 0),
      };
    };
    await sample();
    const cached: number[] = [];
    const again: number[] = [];
    let tokens = 0;
    for (let round_ = 0; round_ < 3; round_++) {
      const one = await sample();
      cached.push(one.ms);
      ({ tokens } = one);
      again.push(await recompute(model, sequences, promptLength, newTokens, threads));
    }
    const [withCache, without] = [median(cached), median(again)];
    report({
      name: 'sampling 3.3M',
      sequences,
      prompt: promptLength,
      new_tokens: newTokens,
      sampled: tokens,
      threads,
      cached_ms: round(withCache, 0),
      recomputed_ms: round(without, 0),
      ratio: round(without / withCache, 1),
      tokens_per_second: Math.round((1000 * tokens) / withCache),
      target_ratio: 20,
    });
    await decoder.dispose();
  }
}

/** Every token by a pass over all tokens so far, logits of the last alone; lengths by 16, so that little is wasted. */
async function recompute(
  model: LanguageModel,
  sequences: number,
  promptLength: number,
  newTokens: number,
  threads: number,
): Promise<number> {
  let total = 0;
  for (let size = promptLength; size < promptLength + newTokens; size += 16) {
    const width = Math.min(size + 16, promptLength + newTokens);
    const g = new Graph();
    const weights = weightInputs(g, model.layout);
    const { hidden } = model.gpt.hidden(weights, g.input('tokens', [sequences, width], 'int64'));
    g.output('logits', model.gpt.logits(weights, gather(hidden, g.input('last', [sequences], 'int64'))));
    const program = await compile(g, { threads, checkFeeds: false });
    const feeds = {
      tokens: new BigInt64Array(sequences * width).fill(5n),
      last: BigInt64Array.from({ length: sequences }, (_, i) => BigInt(i * width + width - 1)),
      ...weightFeeds(model.layout, model.weights),
    };
    program.run(feeds);
    const start = performance.now();
    // Each of the 16 tokens of this size costs the same: two of them tell.
    for (let i = 0; i < 2; i++) program.run(feeds);
    total += ((performance.now() - start) / 2) * 16;
    program.dispose();
  }
  return total;
}

/** A directory of GPT-2 small's sizes with random weights: loads, samples, takes one step of GRPO. */
async function benchLarge(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'keel-gpt2-'));
  try {
    await saveModel(directory, largeModel());
    const gigabytes = (): number => round(process.resourceUsage().maxRSS / 2 ** 20);
    const start = performance.now();
    const model = await loadModel(directory);
    const loaded = performance.now();
    report({
      name: 'gpt2-small load',
      parameters: model.layout.size,
      seconds: round((loaded - start) / 1000, 1),
      peak_gb: gigabytes(),
    });
    const task = await makeTask('arithmetic');
    const threads = 2;
    const config = resolveSettings(grpoSettings, {
      given: {
        promptsPerIteration: 2,
        groupSize: 4,
        microbatchSize: 2,
        maxNewTokens: 32,
        steps: 8,
        threads,
        learningRate: 1e-6,
      },
    });
    const trainer = createGrpoTrainer({ model, task, config });
    const { row } = await trainer.iterate();
    report({
      name: 'gpt2-small grpo step',
      completions: row['episode/count'],
      tokens: round(row['completion/length'] * row['episode/count'], 0),
      threads,
      sample_and_score_s: round(row['time/collect_s'], 1),
      update_s: round(row['time/update_s'], 1),
      guard_s: round(row['time/guard_s'], 1),
      kl_sampler: row['kl/sampler'],
      kl_step: row['kl/step'],
      estimator: 'kl/ref' in row ? 'exact' : 'k3',
      peak_gb: gigabytes(),
      target_peak_gb: 24,
    });
    await trainer.dispose();
    await task.close?.();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** GPT-2 small with random weights; a tokenizer for the task among its 50,257 tokens. */
function largeModel(): LanguageModel {
  return languageModel(small, ownTokenizer('0123456789+-*=\n'), { rng: new Rng(1) });
}
