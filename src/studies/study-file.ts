/**
 * A study from a file: what is searched, over what, how long.
 *
 * ```yaml
 * env: cartpole
 * config: { steps: 50000 }
 * space:
 *   learningRate: { log: [1e-5, 1e-2] }
 *   gamma: [0.98, 0.99, 0.995]
 * trials: 40
 * seeds: 0..2
 * objective: score
 * ```
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { tableFor } from '../algos/settings.ts';
import { codeFileOf, isEnvFile } from '../base/code-reference.ts';
import { ConfigError, KeelError, type Problem, show } from '../base/errors.ts';
import { readBounded } from '../base/files.ts';
import { didYouMean } from '../base/nearest.ts';
import { VERSION } from '../base/version.ts';
import { findMetric, requireMetric } from '../metrics/registry.ts';
import { isRunId } from '../runs/layout.ts';
import { settingProblems } from '../settings/explain.ts';
import { readSettings } from '../settings/files.ts';
import type { Needs, SettingTable, Values } from '../settings/spec.ts';
import { maxTrials } from './checks.ts';
import {
  type Axis,
  type Constraints,
  type Halving,
  type Method,
  methods,
  type Objective,
  type Space,
  type Study,
  type StudySubject,
} from './schema.ts';
import { tuningSeedsOf } from './seeds.ts';
import { gridOf, has, sizeOf } from './space.ts';
import { checkSpace } from './space-file.ts';

/** Trials unless told: enough for a handful of settings. */
const defaultTrials = 50;
const defaultSeeds: readonly number[] = [0, 1, 2];
/** A third of the trials goes on at each rung, and the first rung is after a twenty-seventh of a run. */
const defaultHalving = { eta: 3, rungs: 3 } as const;
/** Code of an environment. */
const maxCodeBytes = 64 * 2 ** 20;

/** Those that a file of settings has not. */
const studyKeys = [
  'name',
  'config',
  'space',
  'method',
  'halving',
  'trials',
  'budgetSteps',
  'seeds',
  'searchSeed',
  'objective',
  'constraints',
] as const;
const keys = ['env', 'task', 'envOptions', 'taskOptions', ...studyKeys] as const;

/** What is known beside the file. */
export interface StudyContext {
  /** Default: the file's `name`. */
  readonly name?: string;
  /** What it is about, by who has found it; else what the file says. A file's path is absolute. */
  readonly subject?: Pick<StudySubject, 'kind' | 'reference'>;
  /** The settings of the subject's preset. */
  readonly preset?: Values;
  readonly now?: Date;
}

/** The keys of a study file, YAML or JSON, not yet checked. */
export const readStudyFile = (path: string): Record<string, unknown> => readSettings(path);

/** Whether a file that is there says what is searched and how, which a file of settings does not. */
export function isStudyFile(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    return Object.keys(readSettings(path)).some(key => (studyKeys as readonly string[]).includes(key));
  } catch (error) {
    if (error instanceof KeelError) return false;
    throw error;
  }
}

/** What a study file is about; undefined if it does not say, or not in a way that can be understood. */
export function subjectIn({ env, task }: Values): StudyContext['subject'] {
  const reference = env ?? task;
  if (typeof reference !== 'string' || reference === '') return undefined;
  return { kind: env === undefined ? 'task' : 'env', reference: absolute(reference) };
}

/** The study that a file's keys ask for. All that is wrong is one error. */
export function studyOf(given: Values, context: StudyContext = {}): Study {
  const problems: Problem[] = [];
  const say: Say = (key, text) => {
    problems.push({ key, text: `${key} ${text}` });
  };
  for (const key of Object.keys(given)) {
    if ((keys as readonly string[]).includes(key)) continue;
    say(key, `is not a key of a study: ${hintFor(key, given, context)}`);
  }
  const subject = subjectOf(given, context, say);
  const table = tableFor('train', subject.kind);
  const preset = context.preset ?? {};
  const config = configOf(given.config, table, preset, say);
  const { space, problems: wrongAxes } = checkSpace(given.space, table);
  problems.push(...wrongAxes);
  for (const { key } of space)
    if (Object.hasOwn(config, key)) say(`config.${key}`, `is searched, too: remove it here or from space`);
  const below = { ...table.defaults, ...preset, ...config };
  // What is wrong otherwise is not judged twice, nor what depends on it.
  const wrong = new Set(wrongAxes.map(({ key }) => key));
  inertAxes(space, table, below, key => wrong.has(`space.${key}`), say);
  const method = methodOf(given.method, space, say);
  const study: Study = {
    kind: 'keel-study',
    schema: 1,
    name: nameOf(context.name ?? given.name, subject.reference, say),
    version: VERSION,
    createdAt: (context.now ?? new Date()).toISOString(),
    subject,
    config,
    preset,
    space,
    method,
    halving: halvingOf(given.halving, below.steps, say),
    trials: trialsOf(given.trials, method, space, say),
    budgetSteps: given.budgetSteps == null ? null : countOf('budgetSteps', given.budgetSteps, 1, say),
    seeds: seedsIn(given.seeds, say),
    searchSeed: given.searchSeed == null ? 0 : countOf('searchSeed', given.searchSeed, 0, say),
    objective: objectiveOf(given.objective, say),
    constraints: constraintsOf(given.constraints, say),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return study;
}

type Say = (key: string, text: string) => void;

/** A setting at the top is a likely slip. */
function hintFor(key: string, given: Values, context: StudyContext): string {
  const kind = context.subject?.kind ?? (given.task === undefined ? 'env' : 'task');
  if (key === 'seed') return 'write seeds: 0..2';
  if (Object.hasOwn(tableFor('train', kind).keys, key))
    return `it is a setting: write it under config or space`;
  return didYouMean(key, keys) || `there are ${keys.join(', ')}`;
}

// ---- what is trained -----------------------------------------------------------------------------------------------

function subjectOf(given: Values, context: StudyContext, say: Say): StudySubject {
  if (given.env !== undefined && given.task !== undefined)
    say('task', 'and env are both there: write one of them');
  for (const key of ['env', 'task'] as const)
    if (given[key] !== undefined && (typeof given[key] !== 'string' || given[key] === ''))
      say(key, `is ${show(given[key])}: write a name or a file, such as cartpole or ./my-env.ts`);
  const found = context.subject ?? subjectIn(given);
  if (found === undefined && given.env === undefined && given.task === undefined)
    say('env', 'is missing: write what to train in, such as env: cartpole');
  const { kind, reference } = found ?? { kind: 'env' as const, reference: '' };
  const other = kind === 'env' ? 'taskOptions' : 'envOptions';
  if (given[other] !== undefined)
    say(other, `is not for ${kind === 'env' ? 'an environment' : 'a task'}: write ${kind}Options`);
  const options = objectOf(`${kind}Options`, given[`${kind}Options`], say);
  return { kind, reference, sha256: hashOf(kind, reference, say), options };
}

/** Of a file's content, so that a worker can tell whether it has the same. */
function hashOf(kind: string, reference: string, say: Say): string | null {
  if (reference === '' || !isEnvFile(reference)) return null;
  try {
    const { file } = codeFileOf(reference);
    return createHash('sha256').update(readBounded(file, maxCodeBytes)).digest('hex');
  } catch (error) {
    if (!(error instanceof KeelError)) throw error;
    say(kind, `is ${show(reference)}: ${error.message}`);
    return null;
  }
}

/** A file by its absolute path, `#id` kept, as everywhere; ids as they are. */
function absolute(reference: string): string {
  if (!isEnvFile(reference) || reference.startsWith('file:')) return reference;
  const [, path = reference, id = ''] = /^(.*?)(#[^#/\\]*)?$/s.exec(reference) ?? [];
  return resolve(path) + id;
}

function configOf(given: unknown, table: SettingTable, preset: Values, say: Say): Values {
  const config = objectOf('config', given, say);
  for (const { key, text } of settingProblems(table, config, preset))
    say(`config.${key}`, text.slice(key.length).trimStart());
  if (Object.hasOwn(config, 'seed')) say('config.seed', 'is of one run: write seeds: 0..2');
  return config;
}

/** Axes that would change nothing where others are as they are: every run of them would be refused. */
function inertAxes(
  space: Space,
  table: SettingTable,
  below: Values,
  isWrong: (key: string) => boolean,
  say: Say,
): void {
  for (const axis of space) {
    const needs = table.keys[axis.key]?.needs;
    if (needs === undefined || isOff(axis, needs) || isWrong(axis.key) || isWrong(needs.key)) continue;
    const needed = space.find(({ key }) => key === needs.key);
    if (needed === undefined) {
      if (!holds(needs, below[needs.key]))
        say(
          `space.${axis.key}`,
          `has no effect without ${addOf(needs)}: write that under config, or remove ${axis.key}`,
        );
    } else if (!alwaysHolds(needs, axis, needed))
      say(
        `space.${axis.key}`,
        `has no effect at some values of ${needs.key}: add when: { ${needs.key}: … } with those at which it has`,
      );
  }
}

const isOff = ({ domain }: Axis, { off }: Needs): boolean =>
  off !== undefined && domain.kind === 'choice' && domain.values.every(value => value === off);
const holds = ({ is, not }: Needs, value: unknown): boolean =>
  is === undefined ? value !== not : value === is;
const addOf = ({ key, is, add }: Needs): string => add ?? (is === undefined ? key : `${key} ${is}`);

function alwaysHolds(needs: Needs, { when }: Axis, { domain }: Axis): boolean {
  if (when?.key === needs.key) return when.in.every(value => holds(needs, value));
  if (domain.kind === 'choice') return domain.values.every(value => holds(needs, value));
  return needs.is === undefined && !has(domain, needs.not ?? null);
}

// ---- how it is searched --------------------------------------------------------------------------------------------

function methodOf(given: unknown, space: Space, say: Say): Method {
  const method = given == null ? 'tpe' : methods.find(one => one === given);
  if (method === undefined)
    say(
      'method',
      `is ${show(given)}: ${didYouMean(String(given).slice(0, 100), methods) || `there are ${methods.join(', ')}`}`,
    );
  if (method === 'grid')
    try {
      gridOf(space);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const { key = 'space', text } of error.problems) say(key, text.slice(key.length).trimStart());
    }
  return method ?? 'tpe';
}

/** A space has no more trials than combinations, where those can be counted. */
function trialsOf(given: unknown, method: Method, space: Space, say: Say): number {
  const wanted = given == null ? undefined : countOf('trials', given, 1, say, maxTrials);
  const all = sizeOf(space);
  if (method === 'grid' || space.length === 0) return Math.min(wanted ?? all, all, maxTrials);
  return wanted ?? Math.min(defaultTrials, all);
}

function halvingOf(given: unknown, steps: unknown, say: Say): Halving | null {
  if (given == null || given === false) return null;
  if (given !== true && !isObject(given)) {
    say('halving', `is ${show(given)}: write true, or { eta: 3, minSteps: 1000 }`);
    return null;
  }
  const { eta = defaultHalving.eta, minSteps, ...rest } = given === true ? {} : given;
  unknownIn('halving', rest, ['eta', 'minSteps'], say);
  if (typeof eta !== 'number' || !(eta >= 1.5 && eta <= 100)) {
    say('halving.eta', `is ${show(eta)}: write a number from 1.5 to 100, such as 3`);
    return null;
  }
  const length = Number(steps);
  if (minSteps === undefined)
    return { eta, minSteps: Math.max(1, Math.ceil(length / eta ** defaultHalving.rungs)) };
  const first = countOf('halving.minSteps', minSteps, 1, say);
  if (first >= length)
    say('halving.minSteps', `is ${first}, not below the ${length} steps of a run: take fewer`);
  return { eta, minSteps: first };
}

function seedsIn(given: unknown, say: Say): readonly number[] {
  const seeds = tuningSeedsOf(given ?? defaultSeeds);
  if (typeof seeds !== 'string') return seeds;
  say('seeds', seeds);
  return defaultSeeds;
}

const parts = ['last', 'best', 'mean'] as const;
const aggregates = ['iqm', 'mean', 'median', 'min', 'max'] as const;
const directions = ['maximize', 'minimize'] as const;

function objectiveOf(given: unknown, say: Say): Objective {
  const fallback: Objective = { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' };
  if (given == null) return fallback;
  if (typeof given !== 'string' && !isObject(given)) {
    say('objective', `is ${show(given)}: write score, or a metric such as eval/return`);
    return fallback;
  }
  const {
    metric = 'score',
    direction,
    of,
    over,
    ...rest
  } = typeof given === 'string' ? { metric: given } : given;
  unknownIn('objective', rest, ['metric', 'direction', 'of', 'over'], say);
  const oneOf = <T extends string>(key: string, value: unknown, all: readonly T[], otherwise: T): T => {
    if (value == null) return otherwise;
    const found = all.find(one => one === value);
    if (found === undefined) say(`objective.${key}`, `is ${show(value)}: write ${all.join(', ')}`);
    return found ?? otherwise;
  };
  const better = betterOf(metric, say);
  if (better === 'none' && direction == null)
    say(
      'objective.direction',
      `is missing: of ${String(metric)} neither more nor less is better; write maximize or minimize`,
    );
  return {
    metric: String(metric),
    direction: oneOf('direction', direction, directions, better === 'lower' ? 'minimize' : 'maximize'),
    of: oneOf('of', of, parts, 'last'),
    over: oneOf('over', over, aggregates, 'iqm'),
  };
}

/** Which way a metric is better; one that is not known is told. */
function betterOf(metric: unknown, say: Say): 'lower' | 'higher' | 'none' {
  if (metric === 'score') return 'higher';
  const found = typeof metric === 'string' ? findMetric(metric) : undefined;
  if (found !== undefined) return found.better;
  try {
    requireMetric(String(metric).slice(0, 200));
  } catch (error) {
    const { message } = error as Error;
    const meant = didYouMean(String(metric).slice(0, 200), ['score']);
    say('objective.metric', meant === '' ? `is an ${message}` : `is ${show(metric)}: ${meant}`);
  }
  return 'higher';
}

function constraintsOf(given: unknown, say: Say): Constraints {
  const { healthy = true, klMax = null, ...rest } = objectOf('constraints', given, say);
  unknownIn('constraints', rest, ['healthy', 'klMax'], say);
  const isBound = klMax === null || (typeof klMax === 'number' && Number.isFinite(klMax) && klMax > 0);
  if (typeof healthy !== 'boolean') say('constraints.healthy', `is ${show(healthy)}: write true or false`);
  if (!isBound) say('constraints.klMax', `is ${show(klMax)}: write a KL above 0 such as 0.05, or null`);
  return { healthy: healthy === true, klMax: isBound ? (klMax as number | null) : null };
}

// ---- values --------------------------------------------------------------------------------------------------------

/** Without one, what it is about: a directory may have many. */
function nameOf(given: unknown, reference: string, say: Say): string {
  if (given == null) {
    const slug = reference
      .split(/[\\/]/)
      .at(-1)!
      .toLowerCase()
      .replace(/#.*$/, '')
      .replace(/\.[cm]?[jt]sx?$/, '')
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 60);
    return isRunId(slug) ? slug : 'study';
  }
  if (typeof given === 'string' && isRunId(given)) return given;
  say(
    'name',
    `is ${show(given)}: use letters, digits, dot, dash and underscore, at most 120, beginning with a letter or digit`,
  );
  return 'study';
}

function countOf(
  key: string,
  given: unknown,
  least: number,
  say: Say,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(given) && (given as number) >= least && (given as number) <= most)
    return given as number;
  const limit = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`;
  say(key, `is ${show(given)}: write a whole number ${limit}`);
  return least;
}

function objectOf(key: string, given: unknown, say: Say): Record<string, unknown> {
  if (given == null) return {};
  if (isObject(given)) return { ...given };
  say(key, `is ${show(given)}: expected keys with values`);
  return {};
}

function unknownIn(key: string, rest: Values, known: readonly string[], say: Say): void {
  for (const name of Object.keys(rest))
    say(`${key}.${name}`, `is not known: ${didYouMean(name, known) || `there are ${known.join(', ')}`}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
