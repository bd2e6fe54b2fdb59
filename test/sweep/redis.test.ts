/** Addresses without their secrets, runs as bytes, and the data of jobs: all that needs no Redis. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyRun } from '../../src/runs/verify.ts';
import { RunWriter } from '../../src/runs/writer.ts';
import { parseJob, parseOutcome, runKey } from '../../src/sweep/job.ts';
import { objectiveOf } from '../../src/sweep/judge.ts';
import { redisAddress, shownAddress } from '../../src/sweep/redis/address.ts';
import { mostUnpackedBytes, packRun, readArchive, stepOf, unpackRun } from '../../src/sweep/redis/archive.ts';
import { connectionOptions, redisError } from '../../src/sweep/redis/connection.ts';
import { bullPriority, jobId, queueName } from '../../src/sweep/redis/names.ts';
import { checkpointOf, rowOf, spec } from '../runs/support/spec.ts';
import { tinyJob } from './support/jobs.ts';

describe('an address', () => {
  test.each([
    ['redis://head', { host: 'head', port: 6379, db: 0, tls: false }, 'redis://head:6379'],
    [
      'rediss://me:s%2Fe@head:6380/2',
      { username: 'me', password: 's/e', tls: true, db: 2 },
      'rediss://head:6380/2',
    ],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }, 'redis://[::1]:7000'],
  ])('%s', (text, parts, shown) => {
    const address = redisAddress(text, {});
    expect(address).toMatchObject(parts);
    expect(shownAddress(address)).toBe(shown);
  });

  test('user and password may be in the environment; the address goes first', () => {
    const environment = { KEEL_REDIS_USERNAME: 'me', KEEL_REDIS_PASSWORD: 'secret' };
    expect(redisAddress('redis://head', environment)).toMatchObject({ username: 'me', password: 'secret' });
    expect(redisAddress('redis://:other@head', environment)).toMatchObject({ password: 'other' });
  });

  test('TLS is asked for where the address says so, for the name of the host', () => {
    expect(connectionOptions(redisAddress('rediss://head', {}))).toMatchObject({
      tls: { servername: 'head' },
    });
    expect(connectionOptions(redisAddress('rediss://10.0.0.5', {})).tls).toEqual({});
    expect(connectionOptions(redisAddress('redis://head', {}))).not.toHaveProperty('tls');
  });

  test('whatever the password is, nothing that is said has it', () => {
    fc.assert(
      fc.property(
        // Shorter ones occur in any sentence.
        fc.string({ minLength: 6 }).filter(text => !/^\s*$/.test(text)),
        fc.constantFrom('redis:', 'rediss:', 'http:', 'redis'),
        (password, protocol) => {
          const hidden = `zq${password}qz`;
          const url = `${protocol}//user:${encodeURIComponent(hidden)}@host:1/x`;
          let said = '';
          try {
            said = shownAddress(redisAddress(url, {}));
          } catch (error) {
            said = (error as Error).message;
          }
          const address = redisAddress(`redis://u:${encodeURIComponent(hidden)}@host:1`, {});
          said += redisError(new Error(`AUTH u ${hidden} failed`), address).message + shownAddress(address);
          for (const form of [hidden, encodeURIComponent(hidden)])
            if (said.includes(form)) throw new Error(said);
        },
      ),
    );
  });
});

describe('a run as bytes', () => {
  const root = mkdtempSync(join(tmpdir(), 'keel-archive-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const dir = join(root, 'from', 'packed');
  beforeAll(async () => {
    const writer = RunWriter.create(spec, { root: join(root, 'from'), id: 'packed' });
    for (let i = 1; i <= 4; i++) {
      writer.row(rowOf(i));
      if (i % 2 === 0) await writer.checkpoint(checkpointOf(i));
    }
    writer.end('stopped', 'enough');
    // What does not travel.
    writeFileSync(join(dir, 'notes.txt'), 'mine');
    mkdirSync(join(dir, 'replays'));
  });

  test('comes out whole, and goes on', async () => {
    const to = join(root, 'to');
    expect(await unpackRun(packRun(dir)!, to, 'packed')).toBe(true);
    expect(stepOf(join(to, 'packed'))).toBe(stepOf(dir));
    for (const name of ['manifest.json', 'metrics.jsonl', 'events.jsonl'])
      expect(readFileSync(join(to, 'packed', name))).toEqual(readFileSync(join(dir, name)));
    expect(() => readFileSync(join(to, 'packed', 'notes.txt'))).toThrow('ENOENT');
    expect(verifyRun(join(to, 'packed')).problems).toEqual(verifyRun(dir).problems);
    const { writer, checkpoint } = RunWriter.resume(join(to, 'packed'));
    expect(checkpoint?.index.step).toBe(stepOf(dir));
    writer.end('stopped');
  });

  test('does not replace one that is as far, nor one that is being written', async () => {
    const to = join(root, 'again');
    await unpackRun(packRun(dir)!, to, 'packed');
    expect(await unpackRun(packRun(dir)!, to, 'packed')).toBe(false);
    const behind = RunWriter.create(spec, { root: join(root, 'busy'), id: 'packed' });
    expect(await unpackRun(packRun(dir)!, join(root, 'busy'), 'packed')).toBe(false);
    behind.end('stopped');
    expect(await unpackRun(packRun(dir)!, join(root, 'busy'), 'packed')).toBe(true);
  });

  test('is not made where it would be too large', () => {
    expect(packRun(dir, 100)).toBeUndefined();
  });

  /** The same with another header. */
  const forged = (
    change: (header: { run: string; step: number; files: { path: string }[] }) => void,
  ): Buffer => {
    const plain = gunzipSync(packRun(dir)!);
    const end = 12 + plain.readUInt32LE(8);
    const header = JSON.parse(plain.toString('utf8', 12, end));
    change(header);
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    return gzipSync(Buffer.concat([plain.subarray(0, 8), length, text, plain.subarray(end)]));
  };

  test.each([
    '../evil',
    '/etc/passwd',
    'checkpoints/../../evil',
    'checkpoints/4/../../evil',
    'lock.1',
    'checkpoints/4/a/b',
    'MANIFEST.json',
    'replays/1.replay',
    'a\\b',
  ])('with a file called %j is refused, and nothing is written', async path => {
    const bytes = forged(({ files }) => {
      files[1].path = path;
    });
    await expect(unpackRun(bytes, join(root, 'evil'), 'packed')).rejects.toThrow(
      'its header is wrong at files.1.path',
    );
    expect(stepOf(join(root, 'evil', 'packed'))).toBe(-1);
  });

  test('of another run, with a file twice, or that is longer or larger than it says is refused', async () => {
    const read = (bytes: Buffer) => () => readArchive(bytes, 'packed');
    expect(read(forged(header => Object.assign(header, { run: 'other' })))).toThrow(
      'it is of run other, not of packed',
    );
    expect(read(forged(({ files }) => Object.assign(files[1], { path: files[0].path })))).toThrow(
      'it has a file twice',
    );
    expect(read(forged(({ files }) => files.pop()))).toThrow('longer than its files');
    expect(read(Buffer.alloc(8 * 2 ** 20 + 1))).toThrow('at most 8388608 are taken');
    // A few kilobytes that become hundreds of megabytes.
    expect(read(gzipSync(Buffer.alloc(1.1 * mostUnpackedBytes), { level: 1 }))).toThrow(
      'it cannot be unpacked',
    );
  });

  test('any byte of it may be wrong: it is refused, or is the same', () => {
    const packed = packRun(dir)!;
    const whole = readArchive(packed, 'packed');
    fc.assert(
      fc.property(fc.nat(packed.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const damaged = Buffer.from(packed);
        damaged[at] ^= change;
        try {
          expect(readArchive(damaged, 'packed')).toEqual(whole);
        } catch (error) {
          if ((error as Error).name !== 'DataError') throw error;
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a link in a run does not lead out of it', () => {
    const copy = RunWriter.create(spec, { root: join(root, 'links'), id: 'linked' });
    copy.end('stopped');
    mkdirSync(join(copy.dir, 'checkpoints'), { recursive: true });
    symlinkSync('/etc/hostname', join(copy.dir, 'checkpoints', 'best'));
    const { files } = readArchive(packRun(copy.dir)!, 'linked');
    expect(files.map(({ path }) => path)).not.toContain('checkpoints/best');
  });
});

describe('jobs as data', () => {
  test('come out as they went in, and everything else is refused', () => {
    const job = tinyJob('a', { until: 64 });
    expect(parseJob(JSON.parse(JSON.stringify(job)), 'x')).toEqual(job);
    for (const wrong of [
      { run: '../a' },
      { run: 'a'.repeat(200) },
      { seed: -1 },
      { seed: 1.5 },
      { until: 'end' },
      { priority: 1e9 },
      { code: 'x' },
      { subject: { ...job.subject, sha256: 'abc' } },
      { subject: { ...job.subject, reference: '' } },
      { objective: { ...job.objective, of: 'worst' } },
      { config: { a: 'x'.repeat(300_000) } },
    ])
      expect(() => parseJob({ ...job, ...wrong }, 'x'), JSON.stringify(wrong).slice(0, 80)).toThrow(
        'the job of x',
      );
  });

  test('an outcome of another run is refused', () => {
    const outcome = {
      ...{
        run: 'b',
        seed: 3,
        status: 'done',
        step: 1,
        finished: true,
        value: 1,
        verdict: null,
        rootCause: null,
      },
      ...{ klMedian: null, klLargest: null, seconds: 1, weights: null, worker: 'w', problem: null },
    };
    expect(parseOutcome(outcome, 'x', tinyJob('b'))).toEqual(outcome);
    expect(() => parseOutcome(outcome, 'x', tinyJob('a'))).toThrow("it is another's");
  });

  test('ids tell parts, runs and what they are made of apart, and have no colon', () => {
    const jobs = [
      tinyJob('a'),
      tinyJob('a', { until: 64 }),
      tinyJob('a', { seed: 4 }),
      tinyJob('a', { config: { steps: 1 } }),
      tinyJob('a', { objective: { ...tinyJob('a').objective, of: 'best' } }),
      tinyJob('b'),
    ];
    const ids = [...jobs.map(job => jobId('s', job)), jobId('t', jobs[0])];
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).not.toContain(':');
    expect(queueName('1.0.0-beta+x:y')).not.toContain(':');
    // The order of keys, the priority and where a file is say nothing of the bits.
    const config = { b: 1, a: { d: 1, c: 2 } };
    const other = { a: { c: 2, d: 1 }, b: 1 };
    expect(runKey(tinyJob('a', { config }))).toBe(runKey(tinyJob('a', { config: other, priority: 7 })));
    const at = (reference: string) => ({ ...tinyJob('a').subject, reference, sha256: '0'.repeat(64) });
    expect(runKey(tinyJob('a', { subject: at('/x/e.ts') }))).toBe(
      runKey(tinyJob('a', { subject: at('/y/e.ts') })),
    );
  });

  test('higher priorities are lower numbers of BullMQ, all of them within its limits', () => {
    expect(bullPriority(2)).toBeLessThan(bullPriority(1));
    for (const priority of [-1_000_000, 0, 1_000_000]) {
      expect(bullPriority(priority)).toBeGreaterThanOrEqual(1);
      expect(bullPriority(priority)).toBeLessThanOrEqual(2_097_151);
    }
  });
});

describe('the objective of a run', () => {
  const objective = { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' } as const;
  const row = (mean: number, count: number, more = {}) => ({
    'episode/return': mean,
    'episode/count': count,
    ...more,
  });

  test('of the score: the newest hundred episodes, or the newest evaluation', () => {
    const rows = [row(1, 50), row(2, 60), row(4, 60), {}];
    expect(objectiveOf(rows, objective)).toBeCloseTo((2 * 60 + 4 * 60) / 120);
    expect(objectiveOf([row(9, 100), row(1, 100)], { ...objective, of: 'best' })).toBe(9);
    expect(objectiveOf([row(9, 100), row(1, 100)], { ...objective, of: 'best', direction: 'minimize' })).toBe(
      1,
    );
    expect(objectiveOf([row(9, 100), row(1, 100)], { ...objective, of: 'mean' })).toBe(5);
    expect(objectiveOf([row(9, 9, { 'eval/return': 3 }), row(1, 9)], objective)).toBe(3);
    expect(objectiveOf([{}, {}], objective)).toBeNull();
  });

  test('of a metric: the last tenth, the best, the mean', () => {
    const rows = Array.from({ length: 20 }, (_, i) => ({ 'kl/step': i }));
    const metric = { ...objective, metric: 'kl/step' };
    expect(objectiveOf(rows, metric)).toBe(18.5);
    expect(objectiveOf(rows, { ...metric, of: 'best', direction: 'minimize' })).toBe(0);
    expect(objectiveOf(rows, { ...metric, of: 'mean' })).toBe(9.5);
    expect(objectiveOf(rows, { ...metric, metric: 'no/such' })).toBeNull();
    expect(objectiveOf([{ 'kl/step': Number.NaN }], metric)).toBeNull();
  });
});
