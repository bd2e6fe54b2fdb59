/** The table of each algorithm, by its name in manifests. */

import type { SettingTable } from '../settings/spec.ts';
import { clonePolicySettings } from './clone/policy/settings.ts';
import { cloneTextSettings } from './clone/text/settings.ts';
import { grpoSettings } from './grpo/settings.ts';
import { ppoSettings } from './ppo/settings.ts';

export const settingTables: readonly SettingTable[] = [
  ppoSettings,
  grpoSettings,
  cloneTextSettings,
  clonePolicySettings,
];

/** The settings of a run's algorithm; undefined if it is none of ours. */
export function tableOf(algorithm: string): SettingTable | undefined {
  return settingTables.find(({ name }) => name === algorithm);
}

/** The settings of what a verb does in an environment or on a task. */
export function tableFor(verb: 'train' | 'clone', kind: 'env' | 'task'): SettingTable {
  if (kind === 'task') return verb === 'train' ? grpoSettings : cloneTextSettings;
  return verb === 'train' ? ppoSettings : clonePolicySettings;
}
