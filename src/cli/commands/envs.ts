import type { Command } from 'commander';
import { toJson } from '../../base/json.ts';
import { listEnvs, makeEnv, prepareEnv } from '../../envs/registry.ts';
import { listTasks } from '../../tasks/registry.ts';
import { contextOf } from '../context.ts';

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
Your own: keel train ./my-env.ts, a file with "export default defineEnv({ … })".

Examples:
  $ keel envs
  $ keel envs --json | jq -r '.[].id'`,
    )
    .action(async (flags: { json?: boolean }, command: Command) => {
      const { print, raw, paint } = contextOf(command);
      const envs = [];
      for (const info of listEnvs()) {
        await prepareEnv(info.id);
        const env = makeEnv(info.id);
        const spaces = { observations: env.observationSpace.describe(), actions: env.actionSpace.describe() };
        env.close?.();
        envs.push({ ...info, ...spaces });
      }
      const tasks = listTasks();
      if (flags.json)
        return raw(
          toJson(
            [
              ...envs,
              ...tasks.map(({ name, summary }) => ({ id: name, kind: 'text task', description: summary })),
            ],
            2,
          ),
        );
      for (const { id, description, observations, actions, maxEpisodeSteps, rewardThreshold } of envs) {
        const limit = maxEpisodeSteps === null ? 'no step limit' : `at most ${maxEpisodeSteps} steps`;
        const solved = rewardThreshold === null ? '' : `, solved at ${rewardThreshold}`;
        print(`${paint(id, 'bold')}  ${description}`);
        const facts = {
          observations,
          actions,
          episodes: limit + solved,
        };
        for (const [name, text] of Object.entries(facts))
          print(`  ${paint(name.padEnd(13), 'dim')}${text}`, 15);
      }
      for (const { name, summary } of tasks) {
        print(`${paint(name, 'bold')}  ${summary}`);
        print(
          `  ${paint('text task'.padEnd(13), 'dim')}keel clone ${name}, then keel train ${name} --from last`,
          15,
        );
      }
    });
}
