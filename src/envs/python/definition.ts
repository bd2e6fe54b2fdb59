/** Environments in Python as definitions: `gym:Hopper-v5`, `./my_env.py:MyEnv`. Nothing is started before one is made. */

import { basename, resolve } from 'node:path';
import { gymIdOf } from '../../base/code-reference.ts';
import { jsonOf } from '../../base/json.ts';
import { findProgram } from '../../base/programs.ts';
import type { EnvDefinition } from '../definition.ts';
import { fail, messageOf, show } from '../errors.ts';
import type { OptionSchemas } from '../options.ts';
import type { ChildConfig } from './child.ts';
import { findPython } from './find-python.ts';
import type { HostOptions } from './host.ts';
import { pythonEnv, startPython } from './python-env.ts';

/** What every environment in Python can be told. */
export type PythonOptions = {
  readonly python: string;
  readonly args: string;
  readonly info: string;
  readonly render: boolean;
  readonly stepSeconds: number;
  readonly startSeconds: number;
  readonly restarts: number;
};

const pythonOptions: OptionSchemas<PythonOptions> = {
  python: {
    default: '',
    doc: 'the Python that runs it; unless given that of $VIRTUAL_ENV, ./.venv or ./venv, else python3',
  },
  args: { default: '{}', doc: 'keyword arguments of the class, as JSON text' },
  info: { default: '', doc: 'numbers of its info that are logged as env/<name>: names with commas between' },
  render: { default: false, doc: 'makes it with render_mode rgb_array, to be seen; slower' },
  stepSeconds: { default: 60, min: 0.05, max: 86_400, doc: 'a call that takes longer has hung' },
  startSeconds: { default: 300, min: 1, max: 86_400, doc: 'the same of importing and making it' },
  restarts: {
    default: 10,
    min: 0,
    integer: true,
    doc: 'deaths of its process that are borne in 10,000 steps',
  },
};

/** Of a class, or a function that makes one, in a file; `name` may be an id that was made of it. */
export function pythonFileDefinition(file: string, name: string | undefined): EnvDefinition<PythonOptions> {
  if (name === undefined || name === '')
    return fail('file-invalid', `${file} may have several classes: say which, as ${file}:MyEnv`);
  const own = /([A-Za-z_]\w*?)(?:-v0)?$/.exec(name)?.[1] ?? name;
  const stem = basename(file).replace(/\.py$/i, '').replaceAll(/\W/g, '_');
  return definitionOf(`py:${stem}.${own}`, `${own} of ${basename(file)}, in Python.`, { file, name: own });
}

/** Of an id that the Python package Gymnasium knows. */
export function gymDefinition(reference: string): EnvDefinition<PythonOptions> {
  const gym = gymIdOf(reference);
  if (!/^[\w.:-]+(?:\/[\w.:-]+)*-v\d{1,6}$/.test(gym) || gym.length > 200)
    return fail(
      'env-unknown',
      `${show(gym)} is no id of Gymnasium's with its version: write one such as gym:Hopper-v5`,
    );
  return definitionOf(reference, `Gymnasium's ${gym}, in Python.`, { gym });
}

function definitionOf(
  id: string,
  description: string,
  target: Pick<ChildConfig, 'file' | 'name' | 'gym'>,
): EnvDefinition<PythonOptions> {
  const hostOf = ({
    python,
    args,
    info,
    render,
    stepSeconds,
    startSeconds,
    restarts,
  }: PythonOptions): HostOptions => ({
    what: target.gym === undefined ? `${target.file}:${target.name}` : id,
    python: findPython(python),
    restarts,
    config: {
      ...target,
      args: argumentsIn(args),
      info: info.split(',').flatMap(name => name.trim() || []),
      render,
      stepSeconds,
      startSeconds,
    },
  });
  return {
    id,
    description,
    options: pythonOptions,
    maxEpisodeSteps: null,
    slow: true,
    start: (options, isQuiet) => startPython(hostOf(options), isQuiet),
    make: options => pythonEnv(hostOf(options)),
  };
}

/** A JSON object of keyword arguments. */
function argumentsIn(text: string): object {
  let value: unknown;
  try {
    value = jsonOf(text);
  } catch (error) {
    return fail('option-invalid', `args ${show(text)} is no JSON: ${messageOf(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return fail('option-invalid', `args ${show(text)} is no JSON object: write '{"size": 8}'`);
  return value;
}

/** A Python that a user names, as a run keeps it: where it is, if that was said by a path. */
export function pythonNamed(given: string): string {
  if (findProgram(given) === undefined)
    fail('python-missing', `--python ${given} is no program: name one such as .venv/bin/python`);
  return given.includes('/') ? resolve(given) : given;
}
