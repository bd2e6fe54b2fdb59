/** Files with settings that lie beside a log. What the log itself says goes before them. */
import { basename, dirname, join } from 'node:path';
import { errorWatch } from './console.ts';
import { cleanLine } from './console-lines.ts';
import { asSetting, forEachLeaf, isObject, type JsonObject, parseJson } from './json.ts';
import { isFile, openPlace } from './places.ts';
import type { RunBuilder } from './run-builder.ts';

const largest = 4 * 2 ** 20;
/** The reader of YAML is slow, and settings are small. */
const largestYaml = 2 ** 18;

/** RLlib's, TRL's and others'; in YAML: Lightning's, Isaac Lab's. */
const jsonNames = ['params.json', 'args.json', 'hparams.json', 'config.json'];
const yamlNames = ['hparams.yaml', 'config.yaml', join('params', 'agent.yaml')];

/**
 * A document above the log that has the settings of several that learn, each by the name of its directory: which part of
 * it is this one's.
 */
const shared: readonly { readonly file: string; readonly part: string; readonly name: string }[] = [
  { file: 'configuration.yaml', part: 'behaviors', name: 'behavior_name' },
];

/** A small file as text, or undefined if it is not there, not a file or too large. */
export function readSmall(path: string, most = largest): string | undefined {
  return readPart(path, size => (size > most ? undefined : [0, size]))?.replace(/^\ufeff/, '');
}

function readPart(
  path: string,
  part: (size: number) => readonly [at: number, length: number] | undefined,
): string | undefined {
  try {
    // Opening a pipe would wait for ever.
    if (!isFile(path)) return undefined;
    const source = openPlace(path);
    try {
      const range = part(source.size);
      return range === undefined ? undefined : source.read(...range).toString('utf8');
    } finally {
      source.close();
    }
  } catch {
    return undefined;
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
  await addShared(run, directory);
}

/** Adds the settings of the directory's own part in a document above it. */
async function addShared(run: RunBuilder, directory: string): Promise<void> {
  for (const { file, part, name } of shared) {
    const path = join(dirname(directory), file);
    const document = await parseYaml(readSmall(path, largestYaml));
    const all = isObject(document) ? document[part] : undefined;
    const own =
      isObject(all) && Object.hasOwn(all, basename(directory)) ? all[basename(directory)] : undefined;
    if (isObject(own)) add(run, { [name]: basename(directory), ...own }, path);
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

const readTail = (path: string): string =>
  readPart(path, size => [Math.max(0, size - tailBytes), Math.min(size, tailBytes)]) ?? '';
