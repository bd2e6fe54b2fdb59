/**
 * Hugging Face GPT-2 directories: `config.json`, `model.safetensors` (or shards with their index), `tokenizer.json`.
 *
 * Weights are stored as (inputs, outputs), which is how GPT-2's own layers ("Conv1D") have them, and the output layer is
 * the token embedding. Names may stand with or without `transformer.` in front. What does not fit is refused by name:
 * a tensor that is missing, has another shape, or would be ignored.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOf } from '../base/json.ts';
import { type GptOptions, gpt } from '../nn/gpt.ts';
import { gatherTensors, namedTensors } from '../nn/named-tensors.ts';
import { type Parameters, parameters } from '../nn/parameters.ts';
import {
  decodeSafetensors,
  readSafetensors,
  type Safetensors,
  SafetensorsError,
  type TensorInput,
  writeSafetensors,
} from '../nn/safetensors.ts';
import { fail, LmError } from './errors.ts';
import { type LanguageModel, languageModel } from './model.ts';
import { type TextTokenizer, tokenizerFrom } from './tokenizer.ts';

const CONFIG_FILE = 'config.json';
const WEIGHTS_FILE = 'model.safetensors';
const TOKENIZER_FILE = 'tokenizer.json';
const TOKENIZER_CONFIG_FILE = 'tokenizer_config.json';
const INDEX_FILE = 'model.safetensors.index.json';

/** GPT-2's own tokenizer.json has 1.4 MB. */
const MAX_JSON_BYTES = 64 * 2 ** 20;
const PREFIX = 'transformer.';
/** Constants that older files carry: causal masks. */
const IGNORED = /^h\.\d+\.attn\.(bias|masked_bias)$/;
/** How many names an error lists. */
const SHOWN = 4;

/** Loads a model; errors name the file and what is wrong with it. */
export async function loadModel(directory: string): Promise<LanguageModel> {
  if (!existsSync(join(directory, CONFIG_FILE))) {
    fail(
      `${directory} is no model: it has no ${CONFIG_FILE}; give a directory with config.json, model.safetensors and tokenizer.json`,
    );
  }
  const options = optionsFrom(readJson(join(directory, CONFIG_FILE)), join(directory, CONFIG_FILE));
  const tokenizer = loadTokenizer(directory);
  const layout = parameters(gpt(options).specs);
  const weights = await readWeights(directory, layout);
  try {
    return languageModel(options, tokenizer, { weights });
  } catch (error) {
    throw error instanceof LmError ? new LmError(`${directory}: ${error.message}`, { cause: error }) : error;
  }
}

/** A model from the files of a directory, in memory: those that {@link modelFiles} writes. */
export function modelFromFiles(files: ReadonlyMap<string, Uint8Array>, source: string): LanguageModel {
  const file = (name: string): Uint8Array => files.get(name) ?? fail(`${source} has no ${name}: use another`);
  const json = (name: string): unknown =>
    parseJson(Buffer.from(file(name)).toString('utf8'), `${name} of ${source}`);
  const options = optionsFrom(json(CONFIG_FILE), `${CONFIG_FILE} of ${source}`);
  const tokenizer = tokenizerFrom(
    json(TOKENIZER_FILE),
    `${TOKENIZER_FILE} of ${source}`,
    json(TOKENIZER_CONFIG_FILE) as Record<string, unknown>,
  );
  const weights = weightsFromFiles(files, parameters(gpt(options).specs), source);
  return languageModel(options, tokenizer, { weights });
}

/** The weights of such a model alone. */
export function weightsFromFiles(
  files: ReadonlyMap<string, Uint8Array>,
  layout: Parameters,
  source: string,
): Float32Array {
  const bytes = files.get(WEIGHTS_FILE) ?? fail(`${source} has no ${WEIGHTS_FILE}: use another`);
  return flatFrom(layout, [decodeSafetensors(bytes, WEIGHTS_FILE)], source);
}

/** The files of a model, for a directory or a checkpoint: text, or a function that writes to a path. */
export function modelFiles(
  model: LanguageModel,
  weights = model.weights,
): Record<string, Uint8Array | ((path: string) => Promise<void>)> {
  const text = (value: unknown): Uint8Array => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
  return {
    [CONFIG_FILE]: text(configOf(model.options, model.tokenizer)),
    [TOKENIZER_FILE]: text(model.tokenizer.json),
    [TOKENIZER_CONFIG_FILE]: text(tokenizerConfigOf(model.tokenizer, model.options.context)),
    [WEIGHTS_FILE]: path => writeSafetensors(path, modelTensors(model.layout, weights), { format: 'pt' }),
  };
}

/** Writes a directory that Hugging Face's tools load. */
export async function saveModel(directory: string, model: LanguageModel): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const [name, file] of Object.entries(modelFiles(model))) {
    const path = join(directory, name);
    if (typeof file === 'function') await file(path);
    else await writeFile(path, file);
  }
}

/** Each tensor of a model under its published name. */
export const modelTensors = (layout: Parameters, weights: Float32Array): Record<string, TensorInput> =>
  namedTensors(layout, weights, PREFIX);

/**
 * A flat vector out of files that have all tensors: of a model, and then nothing besides; or, with a prefix, all under
 * that, whatever else there is.
 */
export function flatFrom(
  layout: Parameters,
  files: readonly Safetensors[],
  source: string,
  prefix = '',
): Float32Array {
  const places = new Map<string, { file: Safetensors; key: string }>();
  for (const file of files) {
    for (const key of file.names) {
      const bare = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : key;
      if (places.has(bare)) fail(`${source} has ${bare} twice: export it again`);
      places.set(bare, { file, key });
    }
  }
  const { flat, missing, otherShapes } = gatherTensors(layout, name => {
    const place = places.get(prefix + name);
    places.delete(prefix + name);
    return place;
  });
  const views = layout.views(flat);
  for (const [name, values] of Object.entries(views)) refuseNonFinite(values, name, source);
  if (missing.length > 0)
    fail(`${source} lacks ${list(missing)}: is it of a GPT-2 with the sizes in config.json? export it again`);
  if (otherShapes.length > 0) {
    const wrong = otherShapes.map(({ name, saved, wanted }) => `${name} is ${saved}, not ${wanted}`);
    fail(`${source} does not fit config.json: ${list(wrong)}: use the config.json that belongs to it`);
  }
  if (prefix !== '') return flat;
  const head = places.get('lm_head.weight');
  if (head) {
    places.delete('lm_head.weight');
    const tied = views['wte.weight'];
    const own = head.file.float32(head.key);
    if (own.length !== tied.length || own.some((value, i) => value !== tied[i]))
      fail(`${source} has an output layer of its own (lm_head.weight): only tied weights are supported`);
  }
  const rest = [...places.keys()].filter(name => !IGNORED.test(name));
  if (rest.length > 0)
    fail(`${source} has ${list(rest)}, which GPT-2 does not: only plain GPT-2 models are supported`);
  return flat;
}

/** A plain loop: a model has a hundred million of them. */
function refuseNonFinite(values: Float32Array, name: string, source: string): void {
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i]))
      fail(
        `${source}: ${name} is ${values[i]} at value ${i}: the model is damaged; use an earlier copy of it`,
      );
  }
}

async function readWeights(directory: string, layout: Parameters): Promise<Float32Array> {
  const single = join(directory, WEIGHTS_FILE);
  const index = join(directory, INDEX_FILE);
  const paths = existsSync(single) ? [single] : existsSync(index) ? shardPaths(directory, index) : [];
  if (paths.length === 0)
    fail(`${directory} has no ${WEIGHTS_FILE} nor ${INDEX_FILE}: save the model as safetensors`);
  const files: Safetensors[] = [];
  for (const path of paths) {
    try {
      files.push(await readSafetensors(path));
    } catch (error) {
      if (error instanceof SafetensorsError) throw error;
      fail(`${path} cannot be read: ${(error as Error).message}: put a whole copy of it back`);
    }
  }
  return flatFrom(layout, files, directory);
}

function shardPaths(directory: string, index: string): string[] {
  const { weight_map: map } = readJson(index) as { weight_map?: unknown };
  if (typeof map !== 'object' || map === null) return fail(`${index} has no weight_map: export it again`);
  const names = [...new Set(Object.values(map))];
  for (const name of names) {
    // A name and not a path: an index must not reach out of its directory.
    if (typeof name !== 'string' || !/^[\w.-]+\.safetensors$/.test(name))
      fail(`${index} names the shard ${JSON.stringify(name)}: use plain names that end in .safetensors`);
  }
  return (names as string[]).map(name => join(directory, name));
}

function loadTokenizer(directory: string): TextTokenizer {
  const path = join(directory, TOKENIZER_FILE);
  if (!existsSync(path)) {
    fail(
      `${directory} has no ${TOKENIZER_FILE}: save the fast tokenizer with it (tokenizer.save_pretrained)`,
    );
  }
  const configPath = join(directory, TOKENIZER_CONFIG_FILE);
  const config = existsSync(configPath) ? (readJson(configPath) as Record<string, unknown>) : {};
  return tokenizerFrom(readJson(path), path, config);
}

function readJson(path: string): unknown {
  const { size } = statSync(path);
  if (size > MAX_JSON_BYTES)
    fail(`${path} has ${size} bytes, at most ${MAX_JSON_BYTES}: is it the right file?`);
  return parseJson(readFileSync(path, 'utf8'), path);
}

function parseJson(text: string, path: string): unknown {
  let value: unknown;
  try {
    value = jsonOf(text);
  } catch (error) {
    fail(`${path} is not JSON: ${(error as Error).message.split('\n')[0]}: put a whole copy of it back`);
  }
  if (typeof value !== 'object' || value === null)
    fail(`${path} holds no object: put a whole copy of it back`);
  return value;
}

/** Sizes from a `config.json`; what would compute something else is refused. */
function optionsFrom(value: unknown, source: string): GptOptions {
  const config = value as Record<string, unknown>;
  if (config.model_type !== 'gpt2')
    fail(`${source}: model_type is ${JSON.stringify(config.model_type)}: only gpt2 is supported`);
  const whole = (key: string, most: number): number => {
    const found = config[key];
    if (!Number.isInteger(found) || (found as number) < 1 || (found as number) > most)
      fail(`${source}: ${key} is ${JSON.stringify(found)}, expected a whole number from 1 to ${most}`);
    return found as number;
  };
  const width = whole('n_embd', 65_536);
  const fixed: [string, readonly unknown[]][] = [
    ['activation_function', ['gelu_new', undefined]],
    ['n_inner', [null, undefined, 4 * width]],
    ['tie_word_embeddings', [true, undefined]],
    ['scale_attn_weights', [true, undefined]],
    ['scale_attn_by_inverse_layer_idx', [false, undefined]],
    ['add_cross_attention', [false, undefined]],
  ];
  for (const [key, allowed] of fixed) {
    if (!allowed.includes(config[key]))
      fail(
        `${source}: ${key} is ${JSON.stringify(config[key])}: only ${JSON.stringify(allowed[0])} is supported`,
      );
  }
  const epsilon = config.layer_norm_epsilon ?? 1e-5;
  if (typeof epsilon !== 'number' || !(epsilon > 0 && epsilon < 1))
    fail(`${source}: layer_norm_epsilon is ${JSON.stringify(epsilon)}, expected a small number such as 1e-5`);
  const options = {
    vocabulary: whole('vocab_size', 10_000_000),
    context: whole('n_positions', 1_000_000),
    layers: whole('n_layer', 1000),
    width,
    heads: whole('n_head', 10_000),
    normEpsilon: epsilon as number,
  };
  if (width % options.heads !== 0)
    fail(`${source}: n_embd ${width} does not divide into n_head ${options.heads}: correct one of them`);
  return options;
}

function configOf(options: GptOptions, { end }: TextTokenizer): Record<string, unknown> {
  return {
    activation_function: 'gelu_new',
    architectures: ['GPT2LMHeadModel'],
    attn_pdrop: 0,
    bos_token_id: end,
    embd_pdrop: 0,
    eos_token_id: end,
    initializer_range: 0.02,
    layer_norm_epsilon: options.normEpsilon ?? 1e-5,
    model_type: 'gpt2',
    n_ctx: options.context,
    n_embd: options.width,
    n_head: options.heads,
    n_inner: null,
    n_layer: options.layers,
    n_positions: options.context,
    resid_pdrop: 0,
    scale_attn_weights: true,
    tie_word_embeddings: true,
    torch_dtype: 'float32',
    use_cache: true,
    vocab_size: options.vocabulary,
  };
}

function tokenizerConfigOf(tokenizer: TextTokenizer, context: number): Record<string, unknown> {
  const end = tokenizer.piece(tokenizer.end);
  return {
    bos_token: end,
    clean_up_tokenization_spaces: false,
    eos_token: end,
    model_max_length: context,
    tokenizer_class: 'PreTrainedTokenizerFast',
  };
}

function list(items: readonly string[]): string {
  return items.length <= SHOWN
    ? items.join(', ')
    : `${items.slice(0, SHOWN).join(', ')} and ${items.length - SHOWN} more`;
}
