import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { listEnvs, makeEnv, prepareEnv } from '../../envs/registry.ts';
import { listTasks } from '../../tasks/registry.ts';
import type { Context } from '../context.ts';
import type { Examples } from '../examples.ts';

export function define(command: Command): void {
  command.option('--json', 'as JSON');
}

export const help = `Your own: ${typed('train', './my-env.ts')}, a file with "export default defineEnv({ … })".`;

export const examples: Examples = [['envs'], ["envs --json | jq -r '.[].id'"]];

export async function run({ print, json, paint }: Context, flags: { json?: boolean }): Promise<void> {
  const envs = [];
  for (const info of listEnvs()) {
    await prepareEnv(info.id);
    const env = makeEnv(info.id);
    const spaces = { observations: env.observationSpace.describe(), actions: env.actionSpace.describe() };
    env.close?.();
    envs.push({ ...info, ...spaces });
  }
  const tasks = listTasks();
  if (flags.json) {
    const texts = tasks.map(({ name, summary }) => ({ id: name, kind: 'text task', description: summary }));
    return json([...envs, ...texts], 2);
  }
  const fact = (name: string, text: string): void => print(`  ${paint(name.padEnd(13), 'dim')}${text}`, 15);
  for (const { id, description, observations, actions, maxEpisodeSteps, rewardThreshold } of envs) {
    const limit = maxEpisodeSteps === null ? 'no step limit' : `at most ${maxEpisodeSteps} steps`;
    const solved = rewardThreshold === null ? '' : `, solved at ${rewardThreshold}`;
    print(`${paint(id, 'bold')}  ${description}`);
    fact('observations', observations);
    fact('actions', actions);
    fact('episodes', limit + solved);
  }
  for (const { name, summary } of tasks) {
    print(`${paint(name, 'bold')}  ${summary}`);
    fact('text task', typed('clone', name));
    fact('then', typed('train', name, '--from', 'last'));
  }
}
