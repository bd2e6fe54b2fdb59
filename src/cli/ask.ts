/** The questions of a bare `keel train`: which environment, a new run or which one to go on with, and whether to open the page. */
import * as prompts from '@clack/prompts';
import { algorithmFor } from '../algos/algorithms.ts';
import { resolveSubject } from '../algos/subject.ts';
import { grouped, number } from '../base/numbers.ts';
import { typed } from '../base/typed.ts';
import { offeredEnvs } from '../envs/registry.ts';
import { readLastRow } from '../runs/log.ts';
import { listRuns } from '../runs/store.ts';
import { listTasks } from '../tasks/registry.ts';
import { ExitWith } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { wholeNumber } from './options.ts';
import { hasScreen } from './page.ts';
import { absoluteEnv } from './settings.ts';

type Task =
  | { readonly kind: 'new'; readonly env: string; readonly from?: string | undefined }
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
  const { id, kind } = await resolveSubject(env);
  // What was cloned is begun from, not gone on with.
  const { name: trained } = algorithmFor('train', { kind });
  const runs = listRuns([root]).runs.filter(
    ({ manifest, status }) =>
      manifest.environment.id === id && manifest.algorithm === trained && status !== 'running',
  );
  const anew = async (): Promise<Task> =>
    kind === 'task' ? { kind: 'new', env, from: await askStart(root, env, id) } : { kind: 'new', env };
  if (runs.length === 0) return anew();
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
  if (run === undefined) return anew();
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

/** What a language model begins from: GRPO improves a model that can do something already. */
async function askStart(root: string, env: string, id: string): Promise<string | undefined> {
  const { name: cloner } = algorithmFor('clone', { kind: 'task' });
  const cloned = listRuns([root]).runs.filter(
    ({ manifest, status }) =>
      manifest.environment.id === id &&
      manifest.algorithm === cloner &&
      status !== 'running' &&
      manifest.step > 0,
  );
  if (cloned.length === 0) {
    prompts.note(
      `It begins with random weights, which seldom earn a reward.\n${typed('clone', env)} makes a model to begin from.`,
    );
    return undefined;
  }
  const choice = answered(
    await prompts.select({
      message: 'Begin from which model?',
      options: [
        ...cloned.slice(0, 15).map(run => ({ value: run.dir, label: run.id, hint: `cloned, ${run.status}` })),
        { value: NEW_RUN, label: 'Random weights' },
      ],
    }),
  );
  return choice === NEW_RUN ? undefined : choice;
}

async function askEnv(): Promise<string> {
  const choice = answered(
    await prompts.select({
      message: 'Which environment or text task?',
      options: [
        ...offeredEnvs().map(({ id, description }) => ({ value: id, label: id, hint: description })),
        ...listTasks().map(({ name, summary }) => ({ value: name, label: name, hint: summary })),
        { value: OWN_FILE, label: 'My own file', hint: './my-env.ts, ./my-task.ts' },
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
  throw new ExitWith(exitCodes.interrupted);
}
