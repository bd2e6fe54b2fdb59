/** Settings from files: a user's, and the presets that come with the package. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { parseYaml, YamlError } from '../base/yaml.ts';

/** The package: both `src/settings` and `dist/settings` are two below it. */
const root = fileURLToPath(new URL('../../', import.meta.url));

/** All keys together take a few kilobytes. */
const MAX_BYTES = 1_000_000;

/** The preset of an environment, which each may have; without one, nothing. */
export function loadPreset(envId: string): Record<string, unknown> {
  const path = join(root, 'configs', `${envId.toLowerCase()}.yaml`);
  return existsSync(path) ? readSettings(path) : {};
}

/** Reads a YAML or JSON file of settings. */
export function readSettings(path: string): Record<string, unknown> {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES)
      throw new ConfigError(
        `${path} has ${size} bytes, settings at most ${MAX_BYTES}: is it the file you meant?`,
      );
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a directory' : code;
    throw new ConfigError(`${path} cannot be read: ${why}: check the path, which begins at ${process.cwd()}`);
  }
  const value = extname(path).toLowerCase() === '.json' ? parseJson(path, text) : yamlOf(path, text);
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new ConfigError(
      `${path} holds ${kindOf(value)}, not keys with values: write lines such as steps: 100000`,
    );
  }
  const { $schema: _, ...settings } = value as Record<string, unknown>;
  return settings;
}

function parseJson(path: string, text: string): unknown {
  try {
    return jsonOf(text);
  } catch (error) {
    throw new ConfigError(`${path} is not JSON: ${(error as Error).message.split('\n')[0]}`);
  }
}

function yamlOf(path: string, text: string): unknown {
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const { at, message } = error;
    throw new ConfigError(
      at === undefined
        ? `${path} is not usable YAML: ${message}`
        : `${path}:${at.line}:${at.column} is not YAML: ${message}`,
    );
  }
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  const text = JSON.stringify(value);
  return `the ${typeof value} ${text.length > 40 ? `${text.slice(0, 39)}…` : text}`;
}
