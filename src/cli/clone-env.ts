/** `keel clone` of an environment's demonstrators. */
import { clone } from '../algos/clone-policy.ts';
import { loadPreset } from '../algos/settings-file.ts';
import { resolveEnv } from '../envs/index.ts';
import { type Context, referenceTo, shownDir } from './context.ts';
import { checkedConfig, located, type Wanted } from './settings.ts';
import { grouped, number, table, toJson } from './terminal.ts';
import type { TextFlags } from './text.ts';

export type CloneFlags = TextFlags & { readonly demonstrators?: string; readonly epochs?: number };

/** Demonstrations of an environment are many and cheap; training's own number of steps would be more than it takes. */
const DEFAULT_STEPS = 100_000;

export async function cloneEnv(
  { print, raw, paint }: Context,
  wanted: Wanted & { readonly env: string },
  flags: CloneFlags,
): Promise<void> {
  const { id } = await resolveEnv(wanted.env);
  const preset = { ...(flags.preset === false ? {} : loadPreset(id)), steps: DEFAULT_STEPS };
  checkedConfig(preset, wanted);
  const names = flags.demonstrators?.split(',').map(name => name.trim());
  const result = await clone({
    env: wanted.env,
    envOptions: wanted.envOptions,
    config: wanted.settings,
    preset,
    root: flags.runDir,
    ...(names === undefined ? {} : { demonstrators: names }),
    ...(flags.epochs === undefined ? {} : { epochs: flags.epochs }),
    onStart({ dir, totalSteps }) {
      if (!flags.json) print(`${paint(id, 'bold')}, ${grouped(totalSteps)} demonstrations: ${shownDir(dir)}`);
    },
    onRow(row) {
      if (flags.json) raw(toJson({ kind: 'row', ...row }));
      else
        print(
          `  epoch ${row['train/iteration']}: loss ${number(row['loss/clone'])}, ${number(100 * row['policy/clone_accuracy']!)}% of the actions`,
        );
    },
  }).catch(error => {
    throw located(error, wanted.sources);
  });
  if (flags.json) {
    raw(toJson({ kind: 'end', id: result.id, dir: result.dir, demonstrators: result.demonstrators }));
    return;
  }
  for (const line of table(
    [
      ['demonstrator', 'mean reward'],
      ...result.demonstrators.map(({ name, rewardMean }) => [name, number(rewardMean)]),
    ],
    [1],
  ))
    raw(`  ${line}`);
  print(`  train    keel train ${wanted.env} --from ${referenceTo(result)}`);
}
