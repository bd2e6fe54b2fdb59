/** What a model of another trainer is, once it was read: all that a run of Keel is made of. */
import type { Space } from '../../envs/spaces.ts';
import type { MomentsState } from '../../rollout/normalise.ts';
import type { Settings } from '../algorithm.ts';
import type { TorchNetwork } from './network.ts';

/** A policy of another trainer. */
export interface ImportedPolicy {
  /** The trainer, its version and the algorithm: `Stable-Baselines3 2.4.1, PPO`. */
  readonly from: string;
  /** The file as its user named it, for errors. */
  readonly source: string;
  readonly network: TorchNetwork;
  /** Undefined where the file does not say. */
  readonly spaces: { readonly observationSpace: Space; readonly actionSpace: Space } | undefined;
  /** What it was trained with, as Keel's settings. */
  readonly settings: Settings;
  /** Whether `settings` say how to train on, or only what the network is and the preset of the environment how to train. */
  readonly isWhole: boolean;
  /** Environment steps that it had done. */
  readonly steps: number;
  /** Adam's moments, laid out as the network, and how many steps they are of. */
  readonly adam: { readonly m: TorchNetwork; readonly v: TorchNetwork; readonly steps: number } | undefined;
  /** What could not be taken over as it was, in sentences. */
  readonly notes: readonly string[];
}

/** What observations and rewards were normalised by. */
export interface ImportedNormaliser {
  readonly file: string;
  /** Null where only rewards were. */
  readonly observations: MomentsState | null;
  readonly rewards: MomentsState | null;
  readonly notes: readonly string[];
}
