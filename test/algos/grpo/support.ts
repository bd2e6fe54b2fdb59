/** A task that a tiny model learns in seconds: after a letter write that letter, and end. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createGrpoTrainer } from '../../../src/algos/grpo/iteration.ts';
import { type GrpoSettings, grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { newModel } from '../../../src/algos/text/model.ts';
import { checkpointDir, readTrajectory } from '../../../src/runs/index.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import {
  clearGrade,
  type Grade,
  sumParts,
  type TaskPrompt,
  type TextTask,
} from '../../../src/tasks/index.ts';

export const tiny = {
  layers: 1,
  width: 16,
  heads: 2,
  threads: 1,
  promptsPerIteration: 4,
  groupSize: 8,
  microbatchSize: 32,
} as const;

export function echoTask(
  change: Partial<TextTask> = {},
  grade?: (prompt: TaskPrompt, completion: string, out: Grade) => void,
): TextTask {
  return {
    name: 'echo',
    characters: 'abcd',
    pieces: [],
    rewardParts: ['right', 'length'],
    metricNames: ['exact', 'sometimes'],
    stop: ['dd'],
    maxPromptTokens: 1,
    maxNewTokens: 6,
    prompt: rng => {
      const letter = 'abcd'[rng.integer(4)];
      return { text: letter, data: letter };
    },
    grade:
      grade ??
      ((prompt, completion, out) => {
        clearGrade(out);
        out.parsed = completion.length > 0;
        out.parts[0] = completion.startsWith(String(prompt.data)) ? 1 : 0;
        out.parts[1] = completion.length === 1 ? 0.5 : 0;
        out.metrics[0] = completion === prompt.data ? 1 : 0;
        if (prompt.data === 'a') out.metrics[1] = completion.length;
        sumParts(out);
      }),
    demonstration: prompt => String(prompt.data),
    ...change,
  };
}

export function trainerFor(settings: GrpoSettings = {}, task = echoTask()) {
  const config = resolveSettings(grpoSettings, { preset: { ...tiny, steps: 32 * 50, ...settings } });
  return createGrpoTrainer({ model: newModel(task, config), task, config });
}

/** A file of the same task, for whole runs. */
export const echoFile = (tasksPath: string): string => `
import { clearGrade, defineTask, sumParts } from '${tasksPath}';
export default defineTask({
  name: 'echo',
  summary: 'After a letter write that letter.',
  make: () => ({
    name: 'echo', characters: 'abcd', pieces: [], rewardParts: ['right'], metricNames: ['exact'], stop: [],
    maxPromptTokens: 1, maxNewTokens: 6,
    prompt: rng => { const letter = 'abcd'[rng.integer(4)]; return { text: letter, data: letter }; },
    grade(prompt, completion, out) {
      clearGrade(out);
      out.parsed = completion.length > 0;
      out.parts[0] = completion.startsWith(prompt.data) ? 1 : 0;
      out.metrics[0] = completion === prompt.data ? 1 : 0;
      sumParts(out);
    },
    demonstration: prompt => prompt.data,
  }),
});
`;

const bytes = (dir: string, step: number, file: string) => readFileSync(join(checkpointDir(dir, step), file));

/** Two runs have the same rows and, at a step, the same checkpoint. */
export function sameEnd(a: string, b: string, step: number): void {
  expect(readTrajectory(a).rows).toEqual(readTrajectory(b).rows);
  for (const file of ['model.safetensors', 'optimizer.safetensors', 'reference.safetensors', 'state.json']) {
    if (!existsSync(join(checkpointDir(a, step), file))) continue;
    expect(bytes(a, step, file).equals(bytes(b, step, file)), file).toBe(true);
  }
}
