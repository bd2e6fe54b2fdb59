import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile, Graph } from '../../src/engine/index.ts';
import {
  batchInputs,
  completionLogProbs,
  type LanguageModel,
  loadModel,
  ownTokenizer,
  pack,
  saveModel,
  shapeFor,
  tokenizerFrom,
  weightFeeds,
} from '../../src/lm/index.ts';
import { readSafetensors, type TensorInput, writeSafetensors } from '../../src/nn/index.ts';
import { plainLogProbs, smallModel } from './support.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-lm-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let made = 0;
const fresh = (): string => join(root, String(made++));

async function saved(model: LanguageModel = smallModel()): Promise<string> {
  const directory = fresh();
  await saveModel(directory, model);
  return directory;
}

const json = (path: string): Record<string, unknown> => JSON.parse(readFileSync(path, 'utf8'));
function change(directory: string, file: string, changes: Record<string, unknown>): void {
  const path = join(directory, file);
  writeFileSync(path, JSON.stringify({ ...json(path), ...changes }));
}

/** All tensors of a saved model, to write again. */
async function tensorsOf(directory: string): Promise<Record<string, TensorInput>> {
  const file = await readSafetensors(join(directory, 'model.safetensors'));
  return Object.fromEntries(
    file.names.map(name => [name, { shape: file.info(name).shape, data: file.float32(name).slice() }]),
  );
}

test('a saved model loads with the same bits, as Hugging Face names and shapes it', async () => {
  const model = smallModel();
  const directory = await saved(model);
  const again = await loadModel(directory);
  expect(again.weights).toEqual(model.weights);
  expect(again.options).toEqual({ ...model.options, normEpsilon: 1e-5 });
  expect(again.tokenizer.encode('hello'.replaceAll('l', 'k'))).toEqual(model.tokenizer.encode('hekko'));
  const file = await readSafetensors(join(directory, 'model.safetensors'));
  expect(file.metadata).toEqual({ format: 'pt' });
  // Conv1D: (inputs, outputs); the output layer is tied, so there is none.
  expect(file.info('transformer.h.1.attn.c_attn.weight').shape).toEqual([16, 48]);
  expect(file.info('transformer.h.1.mlp.c_proj.weight').shape).toEqual([64, 16]);
  expect(file.names).not.toContain('lm_head.weight');
  expect(json(join(directory, 'config.json'))).toMatchObject({
    model_type: 'gpt2',
    n_embd: 16,
    n_positions: 24,
    vocab_size: 18,
  });
  expect(json(join(directory, 'tokenizer_config.json'))).toMatchObject({ eos_token: '<|endoftext|>' });
});

test('names without transformer., shards, masks and a tied output layer load too', async () => {
  const model = smallModel();
  const directory = await saved(model);
  const bare = Object.entries(await tensorsOf(directory)).map(
    ([name, t]) => [name.replace('transformer.', ''), t] as const,
  );
  const half = bare.length >> 1;
  const parts: Record<string, TensorInput>[] = [
    {
      ...Object.fromEntries(bare.slice(0, half)),
      'h.0.attn.bias': { shape: [1, 1, 2, 2], data: new Float32Array(4) },
    },
    { ...Object.fromEntries(bare.slice(half)), 'lm_head.weight': Object.fromEntries(bare)['wte.weight'] },
  ];
  const map: Record<string, string> = {};
  for (const [i, part] of parts.entries()) {
    const name = `model-0000${i + 1}-of-00002.safetensors`;
    await writeSafetensors(join(directory, name), part);
    for (const key of Object.keys(part)) map[key] = name;
  }
  rmSync(join(directory, 'model.safetensors'));
  writeFileSync(join(directory, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }));
  expect((await loadModel(directory)).weights).toEqual(model.weights);
  writeFileSync(
    join(directory, 'model.safetensors.index.json'),
    JSON.stringify({ weight_map: { 'wte.weight': '../other/model.safetensors' } }),
  );
  await expect(loadModel(directory)).rejects.toThrow(
    /names the shard "..\/other\/model.safetensors": use plain names/,
  );
});

test('missing, mismatched, further and untied tensors are refused by name', async () => {
  const directory = await saved();
  const all = await tensorsOf(directory);
  const path = join(directory, 'model.safetensors');
  const { 'transformer.h.0.ln_1.bias': _, ...fewer } = all;
  await writeSafetensors(path, fewer);
  await expect(loadModel(directory)).rejects.toThrow(/lacks h\.0\.ln_1\.bias/);
  await writeSafetensors(path, {
    ...all,
    'transformer.wpe.weight': { shape: [4, 16], data: new Float32Array(64) },
  });
  await expect(loadModel(directory)).rejects.toThrow(/wpe\.weight is \(4, 16\), not \(24, 16\)/);
  await writeSafetensors(path, { ...all, 'transformer.extra': { shape: [1], data: new Float32Array(1) } });
  await expect(loadModel(directory)).rejects.toThrow(/has extra, which GPT-2 does not/);
  await writeSafetensors(path, {
    ...all,
    'lm_head.weight': { shape: [18, 16], data: new Float32Array(18 * 16) },
  });
  await expect(loadModel(directory)).rejects.toThrow(/only tied weights are supported/);
  const damaged = Float32Array.from(all['transformer.ln_f.bias'].data as Float32Array);
  damaged[3] = Number.NaN;
  await writeSafetensors(path, { ...all, 'transformer.ln_f.bias': { shape: [16], data: damaged } });
  await expect(loadModel(directory)).rejects.toThrow(/ln_f\.bias is NaN at value 3: the model is damaged/);
  rmSync(path);
  await expect(loadModel(directory)).rejects.toThrow(
    /has no model\.safetensors nor model\.safetensors\.index\.json/,
  );
});

test('a config that would compute something else, and a tokenizer that does not fit, are refused', async () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ model_type: 'llama' }, /model_type is "llama": only gpt2/],
    [{ activation_function: 'relu' }, /activation_function is "relu": only "gelu_new"/],
    [{ n_embd: 'wide' }, /n_embd is "wide", expected a whole number/],
    [{ n_head: 3 }, /n_embd 16 does not divide into n_head 3/],
    [{ tie_word_embeddings: false }, /tie_word_embeddings is false/],
    [{ layer_norm_epsilon: 2 }, /layer_norm_epsilon is 2/],
  ];
  for (const [changes, message] of cases) {
    const directory = await saved();
    change(directory, 'config.json', changes);
    await expect(loadModel(directory)).rejects.toThrow(message);
  }
  const directory = await saved();
  writeFileSync(
    join(directory, 'tokenizer.json'),
    JSON.stringify(ownTokenizer('abcdefghijklmnopqrstuvwxyz').json),
  );
  await expect(loadModel(directory)).rejects.toThrow(
    /the tokenizer has 28 tokens, the model's vocabulary 18/,
  );
  writeFileSync(join(directory, 'tokenizer.json'), '{"model": 1');
  await expect(loadModel(directory)).rejects.toThrow(/tokenizer\.json is not JSON/);
  rmSync(join(directory, 'tokenizer.json'));
  await expect(loadModel(directory)).rejects.toThrow(/has no tokenizer\.json/);
  await expect(loadModel(join(root, 'nowhere'))).rejects.toThrow(/is no model: it has no config\.json/);
});

test('log-probabilities are those of plain float64 loops to 1e-4, also from a loaded file with another epsilon', async () => {
  const directory = await saved(smallModel(3));
  change(directory, 'config.json', { layer_norm_epsilon: 1e-3 });
  const model = await loadModel(directory);
  const sequences = [
    { prompt: [0, 5, 3], tokens: [4, 9, 17] },
    { prompt: [0, 2, 2, 8, 11, 16], tokens: [7] },
  ];
  const shape = shapeFor(sequences, 2, 24, { step: 4 });
  const g = new Graph();
  const { all, taken, entropy } = completionLogProbs(model, batchInputs(g, shape));
  g.output('all', all);
  g.output('entropy', entropy);
  g.output('taken', taken);
  const program = await compile(g);
  const { tokens, places, targets } = pack(sequences, shape);
  const out = program.run<Record<string, Float32Array>>({
    tokens,
    places,
    targets,
    inverseTemperature: Float32Array.of(1 / 0.7),
    ...weightFeeds(model.layout, model.weights),
  });
  let worst = 0;
  sequences.forEach(({ prompt, tokens: completion }, row) => {
    const plain = plainLogProbs(model, model.weights, [...prompt, ...completion], 0.7);
    completion.forEach((_, i) => {
      const at = row * shape.newTokens + i;
      const expected = plain[prompt.length - 1 + i];
      expected.forEach((value, token) => {
        worst = Math.max(worst, Math.abs(value - out.all[at * 18 + token]));
      });
      const h = -expected.reduce((sum, value) => sum + Math.exp(value) * value, 0);
      expect(out.entropy[at]).toBeCloseTo(h, 4);
      expect(out.taken[at]).toBeCloseTo(expected[completion[i]], 4);
    });
  });
  expect(worst).toBeLessThan(1e-4);
  program.dispose();
});

test("GPT-2's byte-level tokenizer file is read, and merges", () => {
  const bytes = ['a', 'b', 'Ġ', 'ab', 'Ġab', '<|endoftext|>'];
  const tokenizer = tokenizerFrom(
    {
      version: '1.0',
      normalizer: null,
      post_processor: null,
      added_tokens: [{ id: 5, content: '<|endoftext|>', special: true }],
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
      decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true },
      model: {
        type: 'BPE',
        vocab: Object.fromEntries(bytes.map((token, id) => [token, id])),
        merges: ['a b', 'Ġ ab'],
      },
    },
    'test',
  );
  expect(tokenizer.encode('ab ab')).toEqual([3, 4]);
  expect(tokenizer.decode([3, 4, 5])).toBe('ab ab');
  expect(tokenizer.size).toBe(6);
  expect(tokenizer.end).toBe(5);
});

test('the own tokenizer takes the longest piece, gives every text back, and refuses what it does not know', () => {
  const tokenizer = ownTokenizer('abe24 \n.', ['e2', 'e2e4', 'a.b']);
  const pieces = (text: string): string[] => tokenizer.encode(text).map(id => tokenizer.piece(id));
  expect(pieces('e2e4e2e')).toEqual(['e2e4', 'e2', 'e']);
  expect(pieces('a.ba b')).toEqual(['a.b', 'a', ' ', 'b']);
  for (const text of ['', ' ', 'a\n b', 'e2e2e4 '])
    expect(tokenizer.decode([tokenizer.end, ...tokenizer.encode(text)])).toBe(text);
  expect(() => tokenizer.encode('ab?c')).toThrow(/has no token for "\?c" in "ab\?c"/);
  // Nor is its own word for that a text.
  expect(() => tokenizer.encode('a<|unknown|>b')).toThrow(/has no token for "<\|unknow" in/);
  // What a model wrote must show: hidden tokens would be graded as if they were not there.
  const unknown = tokenizer.size - [...'abe24 \n.', 'e2', 'e2e4', 'a.b'].length - 1;
  const [a, b] = tokenizer.encode('ab');
  expect(tokenizer.decode([a, unknown, b])).toBe('a<|unknown|>b');
  expect(tokenizer.decode([a, tokenizer.size + 5, b])).toBe('a\ufffdb');
  expect(tokenizer.piece(tokenizer.size + 5)).toBe('\ufffd');
  expect(() => ownTokenizer('')).toThrow(/no characters/);
  expect(() => tokenizerFrom({ model: {} }, 'x.json')).toThrow(/x\.json/);
});

test('an id beyond the vocabulary is refused: there is no row of the embedding for it', () => {
  const json = structuredClone(ownTokenizer('ab').json) as { model: { vocab: Record<string, number> } };
  json.model.vocab.a = 1e15;
  const damaged = tokenizerFrom(json, 'x.json');
  expect(damaged.encode('b').every(id => id < damaged.size)).toBe(true);
  expect(() => damaged.encode('ab')).toThrow(/^x\.json has no token for "ab"/);
});
