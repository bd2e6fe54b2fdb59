/** Files with settings that lie beside a log. What the log itself says goes before them. */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readingFlags } from '../../base/files.ts';
import { errorWatch } from './console.ts';
import { cleanLine } from './console-lines.ts';
import { asSetting, forEachLeaf, isObject, type JsonObject, parseJson } from './json.ts';
import type { RunBuilder } from './run-builder.ts';

const largest = 4 * 2 ** 20;
/** The reader of YAML is slow, and settings are small. */
const largestYaml = 2 ** 18;

/** RLlib's, TRL's and others'; in YAML: Lightning's, Isaac Lab's. */
const jsonNames = ['params.json', 'args.json', 'hparams.json', 'config.json'];
const yamlNames = ['hparams.yaml', 'config.yaml', join('params', 'agent.yaml')];

/** A small file as text, or undefined if it is not there, not a file or too large. */
export function readSmall(path: string, most = largest): string | undefined {
  let fd: number | undefined;
  try {
    // Opening a pipe would wait for ever.
    if (!isFile(path)) return undefined;
    fd = openSync(path, readingFlags);
    const { size } = fstatSync(fd);
    if (size > most) return undefined;
    const bytes = Buffer.alloc(size);
    return bytes
      .subarray(0, readSync(fd, bytes, 0, size, 0))
      .toString('utf8')
      .replace(/^\ufeff/, '');
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Adds the settings that lie in a directory to a run. */
export async function addSettingsFiles(run: RunBuilder, directory: string): Promise<void> {
  for (const name of jsonNames) {
    const value = parseJson(readSmall(join(directory, name)) ?? '');
    // A model's config.json is not the trainer's.
    if (!isObject(value) || 'model_type' in value || 'architectures' in value) continue;
    add(run, value, join(directory, name));
  }
  for (const name of yamlNames) {
    const value = await parseYaml(readSmall(join(directory, name), largestYaml));
    if (isObject(value)) add(run, value, join(directory, name));
  }
}

/** Adds what W&B keeps beside its log: the config, the newest value of each metric, the end of what was printed. */
export async function addWandbFiles(run: RunBuilder, directory: string): Promise<void> {
  const files = join(directory, 'files');
  const config = await parseYaml(readSmall(join(files, 'config.yaml'), largestYaml));
  if (isObject(config)) {
    const plain: Record<string, unknown> = {};
    for (const [key, entry] of Object.entries(config)) {
      if (key === '_wandb' || key === 'wandb_version') continue;
      plain[key] = isObject(entry) && 'value' in entry ? entry.value : entry;
    }
    add(run, plain, join(files, 'config.yaml'));
  }
  const output = readTail(join(files, 'output.log'));
  const errors = errorWatch();
  for (const line of output.split('\n')) errors.line(cleanLine(line));
  const error = errors.found();
  if (error !== undefined) run.text('error', error);
}

function add(run: RunBuilder, settings: JsonObject, path: string): void {
  forEachLeaf(settings, (name, value) => {
    if (!run.config.has(name)) run.setting(name, asSetting(value));
  });
  run.files.add(path);
}

async function parseYaml(text: string | undefined): Promise<unknown> {
  if (text === undefined || text.trim() === '') return undefined;
  try {
    // Loaded where there is such a file: most logs have none.
    return (await import('../../base/yaml.ts')).parseYaml(text);
  } catch {
    return undefined;
  }
}

const tailBytes = 2 ** 16;

function readTail(path: string): string {
  let fd: number | undefined;
  try {
    if (!isFile(path)) return '';
    fd = openSync(path, readingFlags);
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, tailBytes));
    const count = readSync(fd, bytes, 0, bytes.length, size - bytes.length);
    return bytes.subarray(0, count).toString('utf8');
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
