/** DeepSpeed-Chat, step 3 (RLHF with PPO), as it prints and logs. */
import type { Dialect } from './dialect.ts';
import { flags, namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['actor_learning_rate'],
  epochs: ['ppo_epochs'],
  minibatchSize: ['per_device_training_batch_size'],
  maxCompletionLength: ['max_answer_seq_len'],
  learningRateSchedule: ['lr_scheduler_type'],
};

export const deepspeedChat: Dialect = {
  name: 'deepspeed-chat',
  title: 'DeepSpeed-Chat',
  kind: 'language-model',
  signs: [
    { name: 'Actor Loss', points: 2 },
    { name: 'Unsupervised Loss', points: 2 },
    { name: 'Average reward score', points: 2 },
    { name: 'actor_loss', points: 1 },
    { name: 'critic_loss_sum', points: 2 },
    { name: /reward\/average_reward.*|actor_loss_sum/, points: 2 },
  ],
  mappings: [
    { theirs: /Average reward score|reward(?:\/average_reward)?/, id: 'reward/mean' },
    { theirs: /Actor Loss|actor_loss(?:_sum)?/, id: 'loss/policy' },
    { theirs: /Critic Loss|critic_loss(?:_sum)?/, id: 'loss/value' },
  ],
  ignored: ['Unsupervised Loss', /(?:E2E|Gather|Generate|Training).*/],
  steps: [{ theirs: 'Step', unit: 'updates' }],
  eventStep: { unit: 'updates' },
  config,
  wording: {
    names: namesIn(config, { as: leaf => `--${leaf}` }),
    otherwise: {
      refCoef: value => `self.kl_ctl = ${value} in ppo_trainer.py`,
      clipRange: value => `self.cliprange = ${value} in ppo_trainer.py`,
      gamma: value => `self.gamma = ${value} in ppo_trainer.py`,
    },
    write: flags,
  },
  remarks:
    'Logs no KL at all: its weight and the clip range are constants in ppo_trainer.py. The reward is that of the reward model, without the penalty.',
};
