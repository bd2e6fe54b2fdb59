/** A study from what was asked for: its subject found, the preset taken as it is now, what is searched filled in. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { algorithmFor } from '../algos/algorithms.ts';
import { resolveSubject, type Subject } from '../algos/subject.ts';
import { ConfigError, show } from '../base/errors.ts';
import { resolveSettings } from '../settings/resolve.ts';
import type { Values } from '../settings/spec.ts';
import type { Study } from '../studies/schema.ts';
import { createStudy, defaultStudyRoot, type OpenStudy } from '../studies/store.ts';
import { studyOf } from '../studies/study-file.ts';
import { defaultSpace } from './default-space.ts';
import { requireFitting } from './fitting.ts';

export interface MakeStudyOptions {
  /** Directory of studies; `studies` unless told. */
  readonly root?: string | undefined;
  /** What it is called; unless told after the subject, with a number where that is taken. */
  readonly name?: string | undefined;
  /** Throws if the study is of no use to whoever asked for it; nothing is on disk yet. */
  readonly check?: ((study: Study) => void) | undefined;
}

/** Makes the directory of a new study from the keys of a study file. */
export async function makeStudy(given: Values, options: MakeStudyOptions = {}): Promise<OpenStudy> {
  const root = options.root ?? defaultStudyRoot;
  const subject = await subjectIn(given);
  const algorithm = algorithmFor('train', subject);
  const preset = algorithm.preset(subject.id);
  const whole = {
    ...given,
    // A space that is there and empty is meant: one trial, on all seeds.
    space: given.space ?? defaultSpace(subject.kind, { ...preset, ...(given.config as Values | undefined) }),
  };
  const name = options.name ?? (typeof given.name === 'string' ? given.name : freeName(subject.id, root));
  const study = studyOf(whole, {
    name,
    subject: { kind: subject.kind, reference: subject.reference },
    preset,
  });
  // What all runs have in common is wrong before the first of them begins; what a trial adds is the space's business.
  resolveSettings(algorithm.settings, { preset, given: study.config });
  requireFitting(study, subject, algorithm.settings);
  options.check?.(study);
  return createStudy(study, root);
}

/** The file decides what is meant; a definition in code has no name that another process could find it by. */
async function subjectIn({ env, task, envOptions, taskOptions }: Values): Promise<Subject> {
  const what = env ?? task;
  if (typeof what !== 'string' || what === '')
    throw new ConfigError(
      what === undefined || what === null || what === ''
        ? 'a study has no env: write what to train in, such as env: cartpole or env: ./my-env.ts, or task: chess'
        : `a study needs env or task, a name or a file such as ./my-env.ts, not ${show(what)}: its runs are trained in other processes`,
    );
  return resolveSubject(what, (envOptions ?? taskOptions ?? {}) as object);
}

/** `cartpole`, `cartpole-2` … */
function freeName(id: string, root: string): string {
  const base = id.toLowerCase().replace(/-v\d+$/, '');
  for (let i = 1; ; i++) {
    const name = i === 1 ? base : `${base}-${i}`;
    if (!existsSync(join(resolve(root), name))) return name;
  }
}
