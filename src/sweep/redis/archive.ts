/**
 * A run as one piece of bytes, to travel through Redis where machines share no directory: what going on and judging need.
 * Films and projections stay where they were made; a resume makes the latter again.
 *
 * ```
 * gzip of: "KEELRUN1", length of the header (uint32, little endian), header (JSON: run, step, files), the files' bytes
 * ```
 */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import * as z from 'zod/mini';
import { makeDirectories, readNames, writeDirectoryAtomic } from '../../base/directories.ts';
import { readBounded, writeNewFile } from '../../base/files.ts';
import { jsonOf } from '../../base/json.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { isRunId } from '../../runs/layout.ts';
import { lockHolder } from '../../runs/lock.ts';
import { rebuildProjections } from '../../runs/projections.ts';
import { openRun } from '../../runs/store.ts';
import { DataError } from '../job.ts';

/** Above this a run does not travel through Redis, which keeps everything in memory. */
const mostArchiveBytes = 8 * 2 ** 20;
/** What may come out of that many bytes: logs are text, and shrink to a tenth. */
export const mostUnpackedBytes: number = 64 * 2 ** 20;
const mostFiles = 200;
const mostHeaderBytes = 2 ** 17;
const magic = Buffer.from('KEELRUN1');

/** The whole of what may be in one: plain paths of a run's layout. */
const names =
  /^(manifest\.json|metrics\.jsonl|events\.jsonl|completions\.jsonl|policy\.onnx|checkpoints\/(best|last|(0|[1-9]\d{0,15})\/[a-z0-9][a-z0-9._-]{0,99}))$/;

const headerSchema = z.strictObject({
  run: z.string().check(z.refine(isRunId)),
  step: z.int().check(z.nonnegative()),
  files: z
    .array(
      z.strictObject({
        path: z.string().check(z.regex(names)),
        bytes: z.int().check(z.nonnegative(), z.lte(mostUnpackedBytes)),
        sha256: z.string().check(z.regex(/^[0-9a-f]{64}$/)),
      }),
    )
    .check(z.maxLength(mostFiles)),
});

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** How far a run on disk is: the step of its newest checkpoint; -1 if there is none of that name. */
export function stepOf(dir: string): number {
  if (!existsSync(join(dir, 'manifest.json'))) return -1;
  return listCheckpoints(dir).findLast(({ problem }) => problem === undefined)?.step ?? 0;
}

/** The run as bytes; undefined if they would be more than `most`. It must not be written meanwhile. */
export function packRun(dir: string, most: number = mostArchiveBytes): Buffer | undefined {
  const { id } = openRun(dir);
  // The best and the newest: what else is kept is to look back at.
  const kept = new Set(
    listCheckpoints(dir)
      .filter(({ isBest, isLast }) => isBest || isLast)
      .map(({ step }) => String(step)),
  );
  const paths = [
    ...readNames(dir).filter(name => names.test(name)),
    ...readNames(join(dir, 'checkpoints')).flatMap(name =>
      kept.has(name)
        ? readNames(join(dir, 'checkpoints', name)).map(file => `checkpoints/${name}/${file}`)
        : name === 'best' || name === 'last'
          ? [`checkpoints/${name}`]
          : [],
    ),
    // A link could lead anywhere.
  ].filter(path => lstatSync(join(dir, path)).isFile());
  const sizes = paths.map(path => statSync(join(dir, path)).size);
  if (paths.length > mostFiles || sizes.reduce((a, b) => a + b, 0) > mostUnpackedBytes) return undefined;
  const contents = paths.map(path => readBounded(join(dir, path), mostUnpackedBytes));
  const files = paths.map((path, i) => ({ path, bytes: contents[i].length, sha256: sha256Of(contents[i]) }));
  const header = Buffer.from(JSON.stringify({ run: id, step: stepOf(dir), files }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const packed = gzipSync(Buffer.concat([magic, length, header, ...contents]), { level: 3 });
  return packed.length > most ? undefined : packed;
}

/** A run in bytes, found whole. */
export interface Unpacked {
  readonly run: string;
  readonly step: number;
  readonly files: readonly { readonly path: string; readonly content: Uint8Array }[];
}

const damaged = (why: string): never => {
  throw new DataError(`a run from Redis is damaged or not ours: ${why}`);
};

/** Reads an archive: nothing is believed before it was checked, and nothing is larger than it may be. */
export function readArchive(bytes: Buffer, run: string): Unpacked {
  if (bytes.length > mostArchiveBytes)
    damaged(`it has ${bytes.length} bytes, at most ${mostArchiveBytes} are taken`);
  let plain: Buffer;
  try {
    plain = gunzipSync(bytes, { maxOutputLength: mostUnpackedBytes + mostHeaderBytes });
  } catch {
    return damaged('it cannot be unpacked');
  }
  const start = magic.length + 4;
  if (plain.length < start || !plain.subarray(0, magic.length).equals(magic)) damaged('it begins otherwise');
  const end = start + plain.readUInt32LE(magic.length);
  if (end - start > mostHeaderBytes || end > plain.length) damaged('its header is too long');
  let json: unknown;
  try {
    json = jsonOf(plain.toString('utf8', start, end));
  } catch {
    return damaged('its header is no JSON');
  }
  const { success, data, error } = z.safeParse(headerSchema, json);
  if (!success) return damaged(`its header is wrong at ${error.issues[0].path.join('.')}`);
  if (data.run !== run) damaged(`it is of run ${data.run}, not of ${run}`);
  if (new Set(data.files.map(({ path }) => path)).size < data.files.length) damaged('it has a file twice');
  let at = end;
  const files = data.files.map(({ path, bytes, sha256 }) => {
    const content = plain.subarray(at, at + bytes);
    at += bytes;
    if (content.length < bytes || sha256Of(content) !== sha256) damaged(`${path} is not what was packed`);
    return { path, content };
  });
  if (at !== plain.length) damaged('it is longer than its files');
  return { run, step: data.step, files };
}

/**
 * Puts a run into a directory of runs, whole or not at all, unless the one that is there is as far or is being written.
 * Says whether it did.
 */
export async function unpackRun(bytes: Buffer, root: string, run: string): Promise<boolean> {
  const unpacked = readArchive(bytes, run);
  const dir = join(root, run);
  if (existsSync(dir) && (stepOf(dir) >= unpacked.step || lockHolder(dir) !== undefined)) return false;
  makeDirectories(root);
  await writeDirectoryAtomic(dir, async temporary => {
    for (const { path, content } of unpacked.files) {
      const place = join(temporary, path);
      mkdirSync(dirname(place), { recursive: true });
      writeNewFile(place, content);
    }
    // A manifest that cannot be read, or names another run, is refused before it has the name.
    const { id, config } = openRun(temporary).manifest;
    if (id !== run) damaged(`its manifest is not of ${run}`);
    // Tables for other tools did not travel: they are made of the rows.
    rebuildProjections(temporary, { csv: config.csv !== false, tensorboard: config.tensorboard !== false });
  });
  return true;
}
