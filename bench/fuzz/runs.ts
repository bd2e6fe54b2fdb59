/** A run directory of Keel through all that reads it, and the replays and requests in it. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeelError } from '../../src/base/errors.ts';
import { openInbox, readAdjustments, writeAdjustments } from '../../src/runs/inbox.ts';
import {
  decodeReplay,
  encodeReplay,
  iterateRows,
  listCheckpoints,
  listRuns,
  loadCheckpoint,
  openRun,
  RunWriter,
  readEvents,
  readLastRow,
  readRows,
  readTrajectory,
  resolveRun,
} from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from '../../test/runs/support/spec.ts';
import { ballReplay } from '../../test/view/support/replay.ts';
import { type FuzzedReader, insist } from './reader.ts';

/** All that reads; each may fail, but only with an error of one line. */
const reading: readonly ((dir: string) => unknown)[] = [
  openRun,
  dir => listRuns([join(dir, '..')]),
  dir => resolveRun('run', [join(dir, '..')]),
  readRows,
  readEvents,
  readLastRow,
  dir => [...iterateRows(dir)],
  readTrajectory,
  listCheckpoints,
  dir => loadCheckpoint(dir),
  dir => loadCheckpoint(dir, 'best'),
  readAdjustments,
];

function attempt(read: () => unknown): unknown {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!(error instanceof KeelError)) throw error;
    insist(/^[^\n]{5,900}$/.test(error.message), () => `a message of several lines: ${error.message}`);
    return error;
  }
}

const runDirectory: FuzzedReader = {
  name: 'run',
  async open(directory) {
    const writer = RunWriter.create(spec, { root: join(directory, 'sound'), id: 'run' });
    for (let i = 1; i <= 6; i++) {
      writer.row(rowOf(i));
      if (i % 2 === 0) await writer.checkpoint(checkpointOf(i, 60));
    }
    writer.end('stopped', 'x');
    const source = writer.dir;
    writeAdjustments(source, [{ iteration: 2, key: 'clipRange', value: 0.1, by: 'me' }]);
    const names = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
      name => statSync(join(source, name)).isFile() && !name.startsWith('lock'),
    );
    const truth = loadCheckpoint(source)!;
    const dir = join(directory, 'victim/run');
    cpSync(source, dir, { recursive: true });
    return {
      samples: names.map(name => readFileSync(join(source, name))),
      read(bytes, sample, index) {
        const name = names[sample];
        writeFileSync(join(dir, name), bytes);
        let [refused, resumed]: [unknown, boolean] = [undefined, false];
        for (const read of reading) refused ??= attempt(() => read(dir));
        if (index % 4 === 0) {
          attempt(() => {
            const { writer: again, checkpoint } = RunWriter.resume(dir);
            again.end('stopped');
            resumed = true;
            // What was resumed from is what was saved, bit for bit, or the checkpoint before it.
            if (checkpoint?.index.step === truth.index.step)
              insist(
                [...truth.files].every(([file, saved]) =>
                  checkpoint.files.get(file)?.every((byte, i) => byte === saved[i]),
                ),
                () => 'resumed from a checkpoint that was never saved',
              );
            const last = [...iterateRows(dir)].at(-1)?.['train/iteration'];
            insist(
              last === checkpoint?.index.iteration,
              () => `resumed at ${checkpoint?.index.iteration}, and the log ends with ${last}`,
            );
          });
          insist(!readdirSync(dir).some(entry => entry.startsWith('lock')), () => 'a lock is left');
          // To resume is to write.
          rmSync(dir, { recursive: true });
          cpSync(source, dir, { recursive: true });
        } else cpSync(join(source, name), join(dir, name));
        if (refused !== undefined) throw refused;
        return resumed ? 'resumed' : undefined;
      },
    };
  },
};

const replay: FuzzedReader = {
  name: 'replay',
  open: () => ({
    samples: [encodeReplay(ballReplay()), encodeReplay(ballReplay({ frames: 1 }))],
    read: bytes => decodeReplay(bytes),
  }),
};

const inbox: FuzzedReader = {
  name: 'inbox',
  open(directory) {
    const opened = openInbox(directory);
    const dir = join(directory, 'inbox');
    return {
      samples: [
        Buffer.from('{"type":"set","key":"clipRange","value":0.1}\n'),
        Buffer.from('{"type":"stop"}\n'),
      ],
      read(bytes) {
        mkdirSync(dir, { recursive: true });
        writeFileSync(join(dir, '123e4567-e89b-42d3-a456-426614174000.json'), bytes);
        for (const { request } of opened.take())
          insist(['set', 'stop'].includes(request.type), () => `a request ${request.type}`);
      },
    };
  },
};

export const runReaders: readonly FuzzedReader[] = [runDirectory, replay, inbox];
