/** Models of other trainers: pickles, archives and what is made of them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCleanRl } from '../../src/algos/import/cleanrl.ts';
import type { ImportedPolicy } from '../../src/algos/import/imported.ts';
import { readSb3 } from '../../src/algos/import/sb3.ts';
import { readNormaliser } from '../../src/algos/import/vecnormalize.ts';
import { readPickle } from '../../src/pickle/pickle.ts';
import { openZip } from '../../src/pickle/zip.ts';
import { zipOf } from '../../test/pickle/support.ts';
import { type FuzzedReader, insist } from './reader.ts';

const model = (name: string): Uint8Array =>
  readFileSync(new URL(`../../test/algos/import/models/${name}`, import.meta.url));

/** Of a model: its whole pickles, so that most of what is damaged is no text. */
const picklesIn = (archive: Uint8Array): Uint8Array[] => {
  const zip = openZip(archive, 'sample');
  return zip.names.filter(name => name.endsWith('.pkl')).map(name => zip.read(name));
};

const pickle: FuzzedReader = {
  name: 'pickle',
  open: () => ({
    samples: [
      model('ppo-pendulum-vecnormalize.pkl'),
      ...picklesIn(openZip(model('ppo-pendulum.zip'), 'sample').read('policy.optimizer.pth')),
      ...picklesIn(model('agent.cleanrl_model')),
    ],
    read: bytes => readPickle(bytes, 'damaged'),
  }),
};

const zip: FuzzedReader = {
  name: 'zip',
  open: () => ({
    samples: [model('agent.cleanrl_model'), model('a2c-pendulum.zip')],
    read(bytes) {
      const archive = openZip(bytes, 'damaged');
      for (const name of archive.names) archive.read(name);
    },
  }),
};

const normaliser: FuzzedReader = {
  name: 'vecnormalize',
  open(directory) {
    const path = join(directory, 'vecnormalize.pkl');
    return {
      samples: [model('ppo-pendulum-vecnormalize.pkl')],
      read(bytes) {
        writeFileSync(path, bytes);
        const { observations } = readNormaliser(path);
        insist(
          observations === null || [...observations.mean, ...observations.m2].every(Number.isFinite),
          () => 'moments that are not finite',
        );
      },
    };
  },
};

/** Damage to the files inside of an archive, whose sums are right: what the sums would hide. */
const sb3: FuzzedReader = {
  name: 'sb3',
  open(directory) {
    const path = join(directory, 'model.zip');
    const archive = openZip(model('ppo-pendulum.zip'), 'sample');
    const names = ['data', 'policy.pth', 'policy.optimizer.pth'];
    return {
      samples: names.map(name => archive.read(name)),
      read(bytes, sample) {
        const files = archive.names.map(name => ({
          name,
          content: name === names[sample] ? bytes : archive.read(name),
        }));
        writeFileSync(path, zipOf(files));
        sound(readSb3(path));
      },
    };
  },
};

/** The same for the files inside of a state dict. */
const cleanrl: FuzzedReader = {
  name: 'cleanrl',
  open(directory) {
    const path = join(directory, 'agent.pt');
    const archive = openZip(model('agent.cleanrl_model'), 'sample');
    const names = archive.names.filter(name => !name.endsWith('/version'));
    return {
      samples: names.map(name => archive.read(name)),
      read(bytes, sample) {
        const files = archive.names.map(name => ({
          name,
          content: name === names[sample] ? bytes : archive.read(name),
        }));
        writeFileSync(path, zipOf(files));
        sound(readCleanRl(path));
      },
    };
  },
};

function sound({ network }: ImportedPolicy): void {
  for (const { weight, bias, inputs, outputs } of [...network.actor, ...network.critic]) {
    insist(
      weight.length === inputs * outputs && bias.length === outputs,
      () => `a layer of ${weight.length} weights for ${inputs} x ${outputs}`,
    );
    insist([...weight, ...bias].every(Number.isFinite), () => 'weights that are not finite');
  }
}

export const importReaders: readonly FuzzedReader[] = [pickle, zip, normaliser, sb3, cleanrl];
