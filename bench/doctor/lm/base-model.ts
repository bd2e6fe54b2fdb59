/** The models that the runs start from: one a task, cloned once and kept in a directory. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createCloneTextTrainer } from '../../../src/algos/clone/text/iteration.ts';
import { cloneTextSettings } from '../../../src/algos/clone/text/settings.ts';
import { newModel } from '../../../src/algos/text/model.ts';
import { loadModel, saveModel } from '../../../src/lm/huggingface.ts';
import type { LanguageModel } from '../../../src/lm/model.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import type { TextTask } from '../../../src/tasks/index.ts';
import { type LmTaskName, lmTask, noisyDemonstrations } from './tasks.ts';

const sizes = { layers: 2, width: 64, heads: 2, context: 48, seed: 7, threads: 1 };

/** Demonstrations of the task as it should be done, then as a base model does it. */
const lessons: Readonly<Record<LmTaskName, readonly [clean: number, noisy: number]>> = {
  arithmetic: [57_600, 9600],
  sort: [6400, 9600],
  format: [28_800, 9600],
};

/** A new copy of a task's model; it is made and kept at the first call. */
export async function baseModel(name: LmTaskName, root: string): Promise<LanguageModel> {
  const directory = join(root, `base-${name}`);
  if (!existsSync(join(directory, 'config.json'))) {
    const task = await lmTask(name);
    const model = newModel(task, sizes);
    const [clean, noisy] = lessons[name];
    await teach(model, task, clean, 2e-3);
    await teach(model, noisyDemonstrations(task), noisy, 1e-3);
    await saveModel(directory, model);
  }
  return loadModel(directory);
}

async function teach(
  model: LanguageModel,
  task: TextTask,
  steps: number,
  learningRate: number,
): Promise<void> {
  const config = resolveSettings(cloneTextSettings, { given: { ...sizes, steps, learningRate } });
  const trainer = createCloneTextTrainer({ model, task, config });
  while (trainer.counters.steps < config.steps) await trainer.iterate();
  await trainer.dispose();
}
