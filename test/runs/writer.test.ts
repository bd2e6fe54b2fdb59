import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Sink } from '../../src/metrics/sinks/sink.ts';
import {
  checkpointDir,
  openRun,
  RunError,
  RunWriter,
  readEvents,
  readRows,
  readTrajectory,
  rebuildProjections,
  runPaths,
  saveCheckpoint,
} from '../../src/runs/index.ts';
import { decodeEvents } from '../metrics/support/read-events.ts';
import { checkpointOf, rowOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('writer');
let number = 0;
let id: string;
let dir: string;
beforeEach(() => {
  id = `run-${++number}`;
  dir = join(root, id);
});

/** A clock that shows the same for the same row, however often a run was interrupted. */
const options = { now: () => 1.7e12 };
const create = (): RunWriter => RunWriter.create(spec, { root, id }, options);

async function train(writer: RunWriter, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    if (i % 4 === 0) {
      writer.event({ type: 'skipped', iteration: i, step: i, message: 'not finite', count: 1 });
    }
    writer.row(rowOf(i));
    if (i % 3 === 0) await writer.checkpoint(checkpointOf(i));
  }
}

const tensorboardFile = (directory: string): string =>
  readdirSync(directory)
    .filter(name => name.includes('tfevents'))
    .join();

/** Everything that must not depend on interruptions. */
function outcome(directory: string): object {
  const { csv, checkpoints, best, last } = runPaths(directory);
  const files = readdirSync(checkpoints, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort();
  return {
    ...readTrajectory(directory),
    csv: readFileSync(csv, 'utf8'),
    tensorboard: readFileSync(join(directory, tensorboardFile(directory))).toString('hex'),
    pointers: [readFileSync(best, 'utf8'), readFileSync(last, 'utf8')],
    checkpoints: files.map(path => [path.slice(checkpoints.length), readFileSync(path).toString('hex')]),
  };
}

describe('a run', () => {
  it('is written, ends and can be read', async () => {
    const writer = create();
    expect(openRun(dir).status).toBe('running');
    await train(writer, 1, 7);
    writer.end('finished');
    writer.end('failed', 'too late');
    const run = openRun(dir);
    expect(run).toMatchObject({ status: 'finished', manifest: { iteration: 7, step: 1792, reason: null } });
    expect(readdirSync(dir).sort()).toEqual([
      'checkpoints',
      'events.jsonl',
      'events.out.tfevents.1700000000.keel',
      'manifest.json',
      'metrics.csv',
      'metrics.jsonl',
    ]);
    expect(readRows(dir).items).toHaveLength(7);
    expect(readEvents(dir).items.map(event => event.type)).toEqual([
      'started',
      'checkpoint',
      'skipped',
      'checkpoint',
      'finished',
    ]);
    expect(() => writer.row(rowOf(8))).toThrow(/has ended/);
  });

  it('ends as stopped or failed, with the reason', () => {
    create().end('failed', 'loss was not finite five times');
    expect(openRun(dir)).toMatchObject({
      status: 'failed',
      manifest: { reason: 'loss was not finite five times' },
    });
    expect(readEvents(dir).items.at(-1)).toMatchObject({
      type: 'failed',
      reason: 'loss was not finite five times',
    });
  });

  it('tells other sinks too, and closes them', async () => {
    const seen: string[] = [];
    const sink: Sink = {
      write: row => seen.push(`row ${row['train/iteration']}`),
      event: event => seen.push(event.type),
      flush: () => {},
      close: () => seen.push('close'),
    };
    const writer = RunWriter.create(spec, { root, id }, { sinks: [sink], csv: false, tensorboard: false });
    writer.row(rowOf(1));
    writer.end('stopped', 'Ctrl-C');
    expect(seen).toEqual(['started', 'row 1', 'stopped', 'close']);
    expect(readdirSync(dir)).not.toContain('metrics.csv');
  });

  it('keeps the order that a resume depends on', async () => {
    const writer = create();
    const skipped = (iteration: number) =>
      ({ type: 'skipped', iteration, step: 0, message: '', count: 1 }) as const;
    expect(() => writer.row(rowOf(2))).toThrow(
      'row of iteration 2 after 0: write one row for each iteration',
    );
    writer.row(rowOf(1));
    writer.event(skipped(1));
    writer.event(skipped(2));
    expect(() => writer.event(skipped(3))).toThrow(
      'event skipped of iteration 3 after the row of 1: it belongs to 1 or 2',
    );
    expect(() => writer.event({ ...skipped(2), count: -1 })).toThrow('event "skipped": count is -1');
    await expect(writer.checkpoint(checkpointOf(2))).rejects.toThrow(/save right after the row$/);
    await expect(writer.checkpoint({ ...checkpointOf(1), step: 5 })).rejects.toThrow(
      /save right after the row$/,
    );
    await writer.checkpoint(checkpointOf(1));
    expect(() => writer.event(skipped(1))).toThrow(/after the row of 1 and its checkpoint: it belongs to 2$/);
    writer.event({ type: 'note', iteration: 0, step: 0, message: 'any time', text: 'any time' });
    writer.end('finished');
  });
});

describe('what vanishes under a run', () => {
  const lost: [string, () => void, RegExp][] = [
    [
      'its log',
      () => rmSync(runPaths(dir).metrics),
      /metrics\.jsonl was deleted while it was written, .*checkpoints above all, is safe/,
    ],
    [
      'its log, for another file',
      () => {
        rmSync(runPaths(dir).metrics);
        writeFileSync(runPaths(dir).metrics, '');
      },
      /metrics\.jsonl was replaced while/,
    ],
    [
      'its directory',
      () => rmSync(dir, { recursive: true }),
      /run-\d+ was deleted while it was written, .*nothing of it is left/,
    ],
    ['its events', () => rmSync(runPaths(dir).events), /events\.jsonl was deleted while it was written/],
    [
      'its manifest',
      () => rmSync(runPaths(dir).manifest),
      /manifest\.json was deleted while .*checkpoints are safe; put the manifest back/,
    ],
    [
      'the directory of its checkpoints',
      () => rmSync(runPaths(dir).checkpoints, { recursive: true }),
      /checkpoints was deleted while .*its log is safe; put the checkpoints back .*--discard-later/,
    ],
    [
      'the directory of its checkpoints, for another one',
      () => {
        renameSync(runPaths(dir).checkpoints, join(root, `away-${id}`));
        mkdirSync(runPaths(dir).checkpoints);
      },
      /checkpoints was replaced while/,
    ],
  ];
  it.each(lost)('%s is noticed at the next row, and nothing is made anew', async (_, lose, message) => {
    const writer = create();
    await train(writer, 1, 4);
    lose();
    const before = existsSync(dir) ? readdirSync(dir) : undefined;
    expect(() => writer.row(rowOf(5))).toThrow(message);
    await expect(writer.checkpoint({ ...checkpointOf(4), iteration: 4 })).rejects.toThrow(message);
    writer.end('failed', 'gone');
    expect(existsSync(dir) ? readdirSync(dir).length : undefined).toBe(before && before.length - 1); // its lock
  });

  it('its directory, in the middle of a checkpoint, is not made anew', async () => {
    const writer = create();
    await train(writer, 1, 2);
    const files = () => ({ 'policy.safetensors': () => rmSync(dir, { recursive: true }) });
    await expect(writer.checkpoint({ ...checkpointOf(2), files: files() })).rejects.toThrow(RunError);
    await expect(saveCheckpoint(dir, checkpointOf(2))).rejects.toThrow(/cannot create .*checkpoints/);
    writer.end('failed', 'gone');
    expect(existsSync(dir)).toBe(false);
  });

  it('its events are noticed at the next of them', async () => {
    const writer = create();
    await train(writer, 1, 2);
    rmSync(runPaths(dir).events);
    await expect(writer.checkpoint(checkpointOf(2))).rejects.toThrow(/events\.jsonl was deleted/);
    writer.end('failed', 'gone');
    expect(existsSync(runPaths(dir).events)).toBe(false);
  });
});

describe('resuming', () => {
  it('ends where an uninterrupted run does, to the byte', async () => {
    const whole = RunWriter.create(spec, { root, id: `${id}-whole` }, options);
    await train(whole, 1, 14);
    whole.end('finished');

    const first = create();
    await train(first, 1, 5); // checkpoint at 3
    first.end('stopped', 'Ctrl-C');
    const second = RunWriter.resume(dir, options);
    expect(second.checkpoint?.index.iteration).toBe(3);
    expect(second.checkpoint?.state).toEqual(checkpointOf(3).state);
    expect(openRun(dir).status).toBe('running');
    await train(second.writer, 4, 11); // checkpoint at 9
    second.writer.end('failed', 'x');
    appendFileSync(runPaths(dir).metrics, '{"train/iteration":12,"tra');
    appendFileSync(runPaths(dir).csv, '12,');
    const third = RunWriter.resume(dir, options);
    await train(third.writer, 10, 14);
    third.writer.end('finished');

    expect(outcome(dir)).toEqual(outcome(whole.dir));
    expect(openRun(dir).manifest).toMatchObject({
      resumes: 2,
      iteration: 14,
      status: 'finished',
      reason: null,
    });
    const resumed = readEvents(dir).items.filter(event => event.type === 'resumed');
    expect(resumed).toMatchObject([
      { checkpoint: 768, droppedRows: 2, droppedEvents: 1 },
      { checkpoint: 2304, droppedRows: 2, droppedEvents: 0 },
    ]);
  });

  it('begins again if there was no checkpoint yet', async () => {
    const writer = create();
    writer.event({ type: 'reference', iteration: 0, step: 0, message: 'set' });
    await train(writer, 1, 2);
    writer.end('stopped', 'x');
    const { writer: again, checkpoint } = RunWriter.resume(dir, options);
    expect(checkpoint).toBeUndefined();
    expect(readRows(dir).items).toEqual([]);
    again.event({ type: 'reference', iteration: 0, step: 0, message: 'set' });
    await train(again, 1, 4);
    again.end('finished');
    expect(readTrajectory(dir).events).toHaveLength(3);
  });

  it('does not begin again in silence if checkpoints are gone', async () => {
    const before = (): object => ({ ...readTrajectory(dir), manifest: openRun(dir).manifest });
    const refused =
      /has done 1792 steps, but its checkpoints are gone: .*train anew.* \(discardLater, --discard-later\)$/;
    for (const end of ['finished', 'stopped', 'failed', undefined] as const) {
      id = `run-${++number}`;
      dir = join(root, id);
      const writer = create();
      await train(writer, 1, 7);
      if (end !== undefined) writer.end(end, 'x');
      else {
        // As a kill leaves it: nobody has its lock, and its manifest says that it runs.
        const saved = readFileSync(runPaths(dir).manifest);
        writer.end('stopped');
        writeFileSync(runPaths(dir).manifest, saved);
      }
      rmSync(runPaths(dir).checkpoints, { recursive: true });
      const was = before();
      expect(() => RunWriter.resume(dir, options)).toThrow(refused);
      expect(before()).toEqual(was);
      const { writer: again, checkpoint } = RunWriter.resume(dir, { ...options, discardLater: true });
      expect(checkpoint).toBeUndefined();
      again.end('stopped');
      expect(readRows(dir).items).toEqual([]);
    }
  });

  it('knows that one was whole by the word that the run stopped after it', async () => {
    const writer = create();
    await train(writer, 1, 3);
    writer.end('stopped');
    rmSync(runPaths(dir).checkpoints, { recursive: true });
    expect(() => RunWriter.resume(dir, options)).toThrow(/has done 768 steps, but its checkpoints are gone/);
  });

  it('begins again if a kill came between the event of its first checkpoint and the checkpoint', async () => {
    const writer = create();
    await train(writer, 1, 3);
    const saved = readFileSync(runPaths(dir).manifest);
    writer.end('stopped');
    writeFileSync(runPaths(dir).manifest, saved);
    rmSync(runPaths(dir).checkpoints, { recursive: true });
    const { writer: again, checkpoint } = RunWriter.resume(dir, options);
    expect(checkpoint).toBeUndefined();
    again.end('stopped');
  });

  it('never begins a fork again from its seed', () => {
    const parent = { id: 'other', step: 512 };
    RunWriter.create({ ...spec, parent }, { root, id }, options).end('failed', 'x');
    for (const discardLater of [false, true])
      expect(() => RunWriter.resume(dir, { discardLater })).toThrow(
        /began from step 512 of other and has no checkpoint: .*delete it \(keel runs delete .*start it from that run again$/,
      );
  });

  it('is for one process at a time', async () => {
    const writer = create();
    expect(() => RunWriter.resume(dir)).toThrow(/is being written by this process/);
    writer.end('stopped');
    RunWriter.resume(dir).writer.end('stopped');
  });

  it('changes nothing if the checkpoint is damaged or the caller refuses', async () => {
    const writer = create();
    await train(writer, 1, 7);
    writer.end('stopped');
    const snapshot = (): string[] =>
      readdirSync(dir)
        .filter(n => n !== 'checkpoints')
        .map(n => readFileSync(join(dir, n), 'latin1'));
    const before = snapshot();
    const check = (): never => {
      throw new RunError('the reward is another');
    };
    expect(() => RunWriter.resume(dir, { check })).toThrow('the reward is another');
    const policy = join(checkpointDir(dir, 1536), 'policy.safetensors');
    truncateSync(policy, 10);
    expect(() => RunWriter.resume(dir)).toThrow(/the one before it is whole: use checkpoint 768$/);
    expect(snapshot()).toEqual(before);

    const { writer: again, checkpoint } = RunWriter.resume(dir, { from: 768 });
    expect(checkpoint?.index.environment).toEqual(spec.environment);
    expect(readRows(dir).items).toHaveLength(3);
    expect(readdirSync(runPaths(dir).checkpoints).sort()).toEqual(['768', 'best', 'last']);
    again.end('stopped');
  });

  it('does not go back behind whole checkpoints unless told to', async () => {
    const writer = create();
    await train(writer, 1, 7);
    writer.end('stopped');
    expect(() => RunWriter.resume(dir, { from: 768 })).toThrow(
      /going on from 768 would delete the later checkpoint 1536 of .*: allow it \(discardLater, --discard-later\), or start a new run from 768$/,
    );
    expect(readRows(dir).items).toHaveLength(7);
    RunWriter.resume(dir, { from: 768, discardLater: true }).writer.end('stopped');
    expect(readRows(dir).items).toHaveLength(3);
  });

  it('may change the config, which the manifest then says', async () => {
    create().end('stopped');
    const config = { ...spec.config, lr: 1e-4 };
    RunWriter.resume(dir, { patch: { config } }).writer.end('stopped');
    expect(openRun(dir).manifest.config).toEqual(config);
  });

  it('tidies up what a kill left', async () => {
    const writer = create();
    await train(writer, 1, 3);
    writer.end('stopped');
    const { checkpoints } = runPaths(dir);
    mkdirSync(join(checkpoints, '.keel-tmp-1536-abc'));
    writeFileSync(join(dir, '.keel-tmp-manifest.json-abc'), '');
    rmSync(join(checkpoints, 'last'));
    RunWriter.resume(dir).writer.end('stopped');
    expect(readdirSync(checkpoints).sort()).toEqual(['768', 'best', 'last']);
    expect(readdirSync(dir).some(name => name.startsWith('.keel-tmp'))).toBe(false);
  });

  it('leaves no lock in what is not a run', () => {
    mkdirSync(dir);
    expect(() => RunWriter.resume(dir)).toThrow(/is not a run/);
    expect(readdirSync(dir)).toEqual([]);
    expect(() => RunWriter.resume(join(dir, 'no'))).toThrow(/does not exist/);
  });
});

describe('projections', () => {
  it('made again are the same, under a name that TensorBoard takes for news', async () => {
    const writer = create();
    await train(writer, 1, 10);
    writer.end('finished');
    const before = [readFileSync(runPaths(dir).csv), readFileSync(join(dir, tensorboardFile(dir)))];
    const name = tensorboardFile(dir);
    rebuildProjections(dir);
    expect(readFileSync(runPaths(dir).csv).equals(before[0])).toBe(true);
    expect(tensorboardFile(dir) > name).toBe(true);
    expect(readFileSync(join(dir, tensorboardFile(dir))).equals(before[1])).toBe(true);
    const second = tensorboardFile(dir);
    rebuildProjections(dir);
    expect(tensorboardFile(dir) > second).toBe(true);
    expect(decodeEvents(before[1])).toHaveLength(13);
    rebuildProjections(dir, { csv: false, tensorboard: false });
    expect(readdirSync(dir).sort()).toEqual([
      'checkpoints',
      'events.jsonl',
      'manifest.json',
      'metrics.jsonl',
    ]);
  });
});
