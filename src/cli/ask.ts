/** The questions of a bare `keel train`: which environment, a new run or which one to go on with, and whether to open the page. */
import * as prompts from '@clack/prompts';
import { algorithmFor } from '../algos/algorithms.ts';
import { grouped, number } from '../base/numbers.ts';
import { resolveEnv } from '../envs/load.ts';
import { listEnvs } from '../envs/registry.ts';
import { readLastRow } from '../runs/log.ts';
import { listRuns } from '../runs/store.ts';
import { ExitWith } from './errors.ts';
import { wholeNumber } from './options.ts';
import { hasScreen } from './page.ts';
import { absoluteEnv } from './settings.ts';

type Task =
  | { readonly kind: 'new'; readonly env: string }
  | { readonly kind: 'continue'; readonly dir: string; readonly steps: number | undefined };

/** `open` is undefined where flags had said about the page. */
export type Answer = Task & { readonly open: boolean | undefined };

/** What the command line says already. */
export interface Known {
  readonly root: string;
  readonly steps: number | undefined;
  /** Whether it says something of the page, which is then not asked. */
  readonly page: boolean;
}

const OWN_FILE = '\u0000file';
const NEW_RUN = '\u0000new';

export async function askWhatToTrain(known: Known): Promise<Answer> {
  prompts.intro('keel train');
  const task = await askTask(known);
  if (known.page) return { ...task, open: undefined };
  const question = { message: 'Open the page in the browser?', initialValue: hasScreen() };
  return { ...task, open: answered(await prompts.confirm(question)) };
}

async function askTask({ root, steps: wanted }: Known): Promise<Task> {
  const env = await askEnv();
  const { id } = await resolveEnv(env);
  // What was cloned is begun from, not gone on with.
  const { name: trained } = algorithmFor('train', { kind: 'env' });
  const runs = listRuns([root]).runs.filter(
    ({ manifest, status }) =>
      manifest.environment.id === id && manifest.algorithm === trained && status !== 'running',
  );
  if (runs.length === 0) return { kind: 'new', env };
  const choice = answered(
    await prompts.select({
      message: 'A new run, or go on with one?',
      options: [
        { value: NEW_RUN, label: 'New run' },
        ...runs.slice(0, 15).map(run => {
          const row = readLastRow(run.dir);
          const steps = grouped(row?.['train/step'] ?? run.manifest.step);
          const hint = `${run.status}, ${steps} of ${grouped(Number(run.manifest.config.steps))} steps, return ${number(row?.['episode/return'])}`;
          return { value: run.id, label: run.id, hint };
        }),
      ],
    }),
  );
  const run = runs.find(found => found.id === choice);
  if (run === undefined) return { kind: 'new', env };
  if (run.status !== 'finished') return { kind: 'continue', dir: run.dir, steps: undefined };
  const done = run.manifest.step;
  const steps = answered(
    await prompts.text({
      message: `It has done its ${grouped(done)} steps. How many in all?`,
      initialValue: String(wanted !== undefined && wanted > done ? wanted : 2 * done),
      validate: text => {
        try {
          return wholeNumber(text ?? '') > done ? undefined : `more than ${done}`;
        } catch (error) {
          return (error as Error).message;
        }
      },
    }),
  );
  return { kind: 'continue', dir: run.dir, steps: wholeNumber(steps) };
}

async function askEnv(): Promise<string> {
  const choice = answered(
    await prompts.select({
      message: 'Which environment?',
      options: [
        ...listEnvs()
          .filter(({ name }) => !name.startsWith('Probe'))
          .map(({ id, description }) => ({ value: id, label: id, hint: description })),
        { value: OWN_FILE, label: 'My own file', hint: './my-env.ts' },
      ],
    }),
  );
  if (choice !== OWN_FILE) return choice;
  const path = answered(
    await prompts.text({
      message: 'Its path?',
      placeholder: './my-env.ts',
      validate: text => (text?.trim() ? undefined : 'a path, such as ./my-env.ts'),
    }),
  );
  // A bare name is a file here, not an id.
  return absoluteEnv(/[/\\]/.test(path) ? path : `./${path}`);
}

function answered<T>(answer: T): Exclude<T, symbol> {
  if (typeof answer !== 'symbol') return answer as Exclude<T, symbol>;
  prompts.cancel('Nothing was started.');
  throw new ExitWith(130);
}
