/** PPO as a run knows it. */
import { ConfigError } from '../../base/errors.ts';
import { grouped } from '../../base/numbers.ts';
import { loadPreset } from '../../settings/files.ts';
import { resolveSettings } from '../../settings/resolve.ts';
import { wrong } from '../../settings/spec.ts';
import { type PolicyStart, policyStart } from '../agents/start.ts';
import type { Algorithm, Settings } from '../algorithm.ts';
import { type PpoConfig, ppoSettings } from './settings.ts';

/** The reference is let go over this share of the run. */
const REFERENCE_SHARE = 2 / 3;
/** The learning rate rises over a share of the run, and over so many updates at least, but no more than half of the run. */
const WARMUP_SHARE = 0.1;
const WARMUP_UPDATES = 5;

export const ppo: Algorithm<PpoConfig, PolicyStart> = {
  name: 'ppo',
  verb: 'train',
  learnsIn: 'env',
  unit: 'steps',
  settings: ppoSettings,
  preset: loadPreset,
  startPreset,
  start: policyStart,
  remark: overshoot,
  preflight: async options => (await import('./preflight.ts')).preflight(options),
  open: async opening => (await import('./learner.ts')).openLearner(opening),
  openPolicy: async opening => (await import('../agents/policy.ts')).agentPolicy(opening),
};

/**
 * A preset for a warm start: near the start at first, which is a reference to stay near, and with small first steps, whose
 * directions are mostly noise (docs/results.md, routing, has runs with and without). What the preset and the user set stays;
 * the network is that of the start, unless the user says otherwise.
 */
function startPreset(preset: Settings, written: Settings, { name, network = {} }: PolicyStart): Settings {
  const { activation } = network;
  if (activation !== undefined && written.activation !== undefined && written.activation !== activation)
    throw new ConfigError([
      wrong(
        'activation',
        `${written.activation} is not that of ${name}, whose weights mean nothing with another: use ${activation}, or leave it out`,
      ),
    ]);
  const near = { reference: 'frozen', ...preset, ...network };
  const { steps, envs, stepsPerRollout, minibatchSize, epochs } = resolveSettings(ppoSettings, {
    preset: near,
    given: written,
  });
  const samples = envs * stepsPerRollout;
  const updates = Math.ceil(steps / samples);
  const minibatchSteps = updates * epochs * (samples / minibatchSize);
  return {
    klRefDecaySteps: Math.round(REFERENCE_SHARE * minibatchSteps),
    warmupShare: Math.min(0.5, Math.max(WARMUP_SHARE, WARMUP_UPDATES / updates)),
    ...near,
  };
}

/** Rollouts are whole, so a run may do more steps than were asked for; said where it is more than a tenth. */
function overshoot({
  config,
  step,
}: {
  readonly config: PpoConfig;
  readonly step: number;
}): string | undefined {
  const { envs, stepsPerRollout, minibatchSize, steps } = config;
  const rollout = envs * stepsPerRollout;
  const total = step + Math.ceil(Math.max(0, steps - step) / rollout) * rollout;
  if (total - steps <= (steps - step) / 10) return undefined;
  const fitting = Math.floor((steps - step) / envs);
  const remedy =
    fitting > 0 && (fitting * envs) % minibatchSize === 0
      ? `--set stepsPerRollout=${fitting} does just those`
      : 'for fewer, set a smaller stepsPerRollout, envs or minibatchSize';
  return `it will do ${grouped(total)} steps, not ${grouped(steps)}, because one rollout is ${grouped(rollout)} (envs ${envs} x stepsPerRollout ${stepsPerRollout}): ${remedy}`;
}
