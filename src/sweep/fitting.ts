/** What the subject of a study itself refuses, found before any run is begun: each of them would end with the same sentence. */
import type { Subject } from '../algos/subject.ts';
import { ConfigError, KeelError, type Problem } from '../base/errors.ts';
import { type OptionSchemas, resolveOptions } from '../envs/options.ts';
import { makeEnv } from '../envs/registry.ts';
import { inertForActions } from '../settings/resolve.ts';
import type { SettingTable } from '../settings/spec.ts';
import type { Axis, ParamValue, Study } from '../studies/schema.ts';
import { appliedParams } from '../studies/space.ts';

/** Refuses options that the subject does not have or take, and settings that do nothing for its actions. */
export function requireFitting(study: Study, subject: Subject, table: SettingTable): void {
  const { options } = subject;
  const schemas = (subject.definition.options ?? {}) as OptionSchemas;
  // Of every environment, and checked where one is made.
  const known = (given: object): void => {
    const { maxEpisodeSteps: _, ...own } = given as { maxEpisodeSteps?: unknown };
    resolveOptions(subject.id, schemas, own);
  };
  const ofOptions = problemsOf(`${subject.kind}Options`, () => known(options));
  const ofAxes = study.space.flatMap(axis =>
    problemsOf(`space.${axis.key}`, () => {
      for (const value of triedOf(axis)) known(appliedParams({ [axis.key]: value }).options);
    }),
  );
  const problems = [...ofOptions, ...ofAxes];
  if (problems.length === 0 && subject.kind === 'env') {
    const env = makeEnv(subject.id, options);
    const { actionSpace } = env;
    env.close?.();
    const searched = study.space.map(({ key }) => [key, `space.${key}`] as const);
    const given = Object.entries(study.config).flatMap(([key, value]) =>
      value === table.defaults[key] ? [] : [[key, `config.${key}`] as const],
    );
    const inert = inertForActions(table, actionSpace);
    for (const [key, at] of [...given, ...searched]) {
      const why = inert.get(key);
      if (why === undefined) continue;
      const text = `${at} has no effect on the actions ${actionSpace.describe()}: ${why}; remove it`;
      problems.push({ key: at, text });
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

/** The values by which one sees whether an axis' values are taken: all of a list, the ends of a range. */
const triedOf = ({ domain }: Axis): readonly ParamValue[] =>
  domain.kind === 'choice' ? domain.values : [domain.low, domain.high];

function problemsOf(key: string, check: () => void): Problem[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof KeelError)) throw error;
    return [{ key, text: `${key}: ${error.message}` }];
  }
}
