/** All changes that the doctor advises in one command, with what the run was begun with: its steps, its seed, its settings. */
import { tableOf } from '../../algos/settings.ts';
import { typed } from '../../base/typed.ts';
import { type Diagnosis, loud } from '../../doctor/findings.ts';
import { subjectReference } from '../../runs/named-code.ts';
import { referenceTo } from '../../runs/reference.ts';
import type { Manifest } from '../../runs/schema.ts';
import { inertKeys } from '../../settings/resolve.ts';
import type { CheckpointSummary, Remedy } from '../api.ts';
import { lastHealthy } from '../checkpoints.ts';
import type { KeelRun } from '../runs/keel-run.ts';
import { settingsIn } from './proposals.ts';

type Begun = Pick<KeelRun, 'path' | 'manifest' | 'settingsAt'>;

/** What to type; null where there is nothing to change. */
export function remedyOf(
  run: Begun,
  diagnosis: Diagnosis,
  checkpoints: readonly CheckpointSummary[],
): Remedy | null {
  const changes = settingsIn(loud(diagnosis.findings).flatMap(({ fixes }) => fixes));
  if (changes.length === 0) return null;
  const set = Object.fromEntries(changes);
  const checkpoint = lastHealthy(checkpoints)?.step;
  const anew = anewWords(run, set);
  return {
    set,
    fork:
      checkpoint === undefined || diagnosis.verdict !== 'sick'
        ? null
        : {
            checkpoint,
            command: typed(
              'fork',
              referenceTo(run.path),
              '--checkpoint',
              String(checkpoint),
              ...setsOf(changes),
            ),
          },
    anew: anew === null ? null : typed(...anew),
  };
}

const setsOf = (settings: Iterable<readonly [name: string, value: unknown]>): string[] =>
  [...settings].flatMap(([name, value]) => ['--set', `${name}=${textOf(value)}`]);

/** As YAML reads it back. */
const textOf = (value: unknown): string =>
  typeof value === 'string' &&
  /^[A-Za-z][\w-]*$/.test(value) &&
  !/^(?:true|false|null|yes|no|on|off)$/i.test(value)
    ? value
    : JSON.stringify(value);

/** The arguments that begin such a run again with other settings; null of one that no command of this version begins. */
export function anewWords(
  run: Pick<Begun, 'manifest' | 'settingsAt'>,
  set: Readonly<Record<string, number>>,
): string[] | null {
  const { manifest } = run;
  const table = tableOf(manifest?.algorithm ?? '');
  if (manifest === undefined || table === undefined) return null;
  const { beginning, seed } = manifest;
  if (beginning?.forked) {
    const changed = { ...beginning.written, ...set };
    return [
      'fork',
      referenceTo(beginning.path),
      '--checkpoint',
      String(beginning.step),
      ...setsOf(Object.entries(changed)),
    ];
  }
  const config: Readonly<Record<string, unknown>> = { ...run.settingsAt(0), ...set };
  const inert = inertKeys(table, config);
  const settings = Object.entries(table.keys).flatMap(([key, { fallback }]): [string, unknown][] => {
    const value = config[key];
    const isOwn = key !== 'steps' && key !== 'seed';
    return isOwn && value !== undefined && !inert.has(key) && !isEqual(value, fallback) ? [[key, value]] : [];
  });
  const options = Object.entries(manifest.environment.options)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]): [string, unknown] => [`envOptions.${name}`, value]);
  return [
    table.name.startsWith('clone') ? 'clone' : 'train',
    subjectOf(manifest),
    '--no-preset',
    ...(typeof config.steps === 'number' ? ['--steps', String(config.steps)] : []),
    ...['--seed', String(seed)],
    ...(beginning === undefined ? [] : ['--from', beginning.path]),
    ...setsOf(settings),
    ...setsOf(options),
  ];
}

const subjectOf = (manifest: Manifest): string => subjectReference(manifest).value;

const isEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
