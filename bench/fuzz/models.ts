/** Weights, tokenizers and model directories. Keel writes ONNX and reads none. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeelError } from '../../src/base/errors.ts';
import { jsonOf } from '../../src/base/json.ts';
import { loadModel, ownTokenizer, saveModel, tokenizerFrom } from '../../src/lm/index.ts';
import { decodeSafetensors, encodeSafetensors } from '../../src/nn/index.ts';
import { smallModel } from '../../test/lm/support.ts';
import { type FuzzedReader, insist } from './reader.ts';

const safetensors: FuzzedReader = {
  name: 'safetensors',
  open: () => ({
    samples: [
      encodeSafetensors({
        a: { shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
        'b.c': { shape: [], data: Float32Array.of(7) },
        none: { shape: [0], data: new Float32Array(0) },
      }),
    ],
    read(bytes) {
      const file = decodeSafetensors(bytes);
      for (const name of file.names) {
        const { shape } = file.info(name);
        const values = file.float32(name);
        const wanted = shape.reduce((product, size) => product * size, 1);
        insist(values.length === wanted, () => `${name} has ${values.length} values of ${wanted}`);
      }
    },
  }),
};

/** Texts as a tokenizer's JSON: what is no JSON is refused here, as where the file is read. */
const tokenizer: FuzzedReader = {
  name: 'tokenizer',
  open: () => ({
    samples: [Buffer.from(JSON.stringify(ownTokenizer('abcdefgh', ['ab', 'cd']).json))],
    read(bytes) {
      let json: unknown;
      try {
        json = jsonOf(bytes.toString('utf8'));
      } catch (cause) {
        throw new KeelError('not JSON', { cause });
      }
      const made = tokenizerFrom(json, 'tokenizer.json');
      const ids = made.encode('abcdab');
      insist(
        ids.every(id => Number.isInteger(id) && id >= 0 && id < made.size),
        () => `ids ${ids} of ${made.size}`,
      );
      made.decode([0, 1, made.end, made.size + 5]);
    },
  }),
};

const modelDirectory: FuzzedReader = {
  name: 'model',
  async open(directory) {
    await saveModel(directory, smallModel(1, { layers: 1, width: 8, heads: 1, context: 8 }));
    const names = readdirSync(directory).sort();
    const samples = names.map(name => readFileSync(join(directory, name)));
    return {
      samples,
      async read(bytes, sample) {
        const path = join(directory, names[sample]);
        writeFileSync(path, bytes);
        try {
          const model = await loadModel(directory);
          insist(model.weights.every(Number.isFinite), () => 'weights that are not finite');
          model.tokenizer.encode('abc');
        } finally {
          writeFileSync(path, samples[sample]);
        }
      },
    };
  },
};

export const modelReaders: readonly FuzzedReader[] = [safetensors, tokenizer, modelDirectory];
