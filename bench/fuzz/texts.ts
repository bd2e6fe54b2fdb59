/** What users write or fetch: settings, traces of requests, games and positions. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkEach, gatherSettings } from '../../src/cli/settings.ts';
import { parseTrace } from '../../src/envs/cluster/trace.ts';
import { START_FEN } from '../../src/tasks/chess/fen.ts';
import { gamesOfFile } from '../../src/tasks/chess/files.ts';
import { type FuzzedReader, insist } from './reader.ts';

/** Settings files in both formats, whole: names, values, what they say of each other. */
const settings: FuzzedReader = {
  name: 'settings',
  open: directory => ({
    samples: [
      Buffer.from(
        'env: CartPole-v1\nsteps: 100000\nhidden: [64, 64]\nlearningRate: 3e-4 # a rate\ntargetKl: null\n',
      ),
      Buffer.from('{"env": "Pendulum-v1", "envOptions": {"g": 9.81}, "steps": 1000, "clipRange": 0.2}'),
    ],
    read(bytes, sample) {
      const config = join(directory, sample === 0 ? 'x.yaml' : 'x.json');
      writeFileSync(config, bytes);
      checkEach(gatherSettings(undefined, { config, set: [] }));
    },
  }),
};

const sets: FuzzedReader = {
  name: 'set',
  open: () => ({
    samples: ['hidden=[32,32]', 'targetKl=null', 'envOptions.length=0.5', 'steps=1e5'].map(text =>
      Buffer.from(text),
    ),
    read: bytes => checkEach(gatherSettings('CartPole-v1', { set: [bytes.toString('utf8')] })),
  }),
};

const trace: FuzzedReader = {
  name: 'trace',
  open: () => ({
    samples: [
      'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n2023-11-16 18:17:04.03,3180,8\n',
      'arrived_at,num_prefill_tokens,num_decode_tokens\n0,10,20\n0.5,30,40\n1.25,50,60\n',
      'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n',
    ].map(text => Buffer.from(text)),
    read(bytes) {
      const { arrivalS, promptTokens } = parseTrace(bytes.toString('utf8'), 'trace.csv');
      insist(arrivalS.every(Number.isFinite), () => 'a time that is not finite');
      insist(
        promptTokens.every(tokens => tokens > 0),
        () => 'a prompt without tokens',
      );
    },
  }),
};

const pgn = `[Event "a"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 {a comment} Nc6 3. Bb5 a6 (3... Nf6 4. O-O) 4. Ba4 $1 Nf6 5. O-O Be7 1-0\n\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n[SetUp "1"]\n\n1. e4 Kd7 *\n`;

const games: FuzzedReader = {
  name: 'chess',
  open: directory => ({
    samples: [
      Buffer.from(pgn),
      Buffer.from(
        `${START_FEN}\nr3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1\n8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1\n`,
      ),
    ],
    async read(bytes, sample) {
      const file = join(directory, sample === 0 ? 'x.pgn' : 'x.fen');
      writeFileSync(file, bytes);
      const found = await gamesOfFile(file);
      insist(found.count > 0, () => 'no game');
    },
  }),
};

export const textReaders: readonly FuzzedReader[] = [settings, sets, trace, games];
