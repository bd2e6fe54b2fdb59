/** Every trainer that is known by its names. Of two that fit equally well the first is taken. */
import { cleanrl } from './cleanrl.ts';
import { deepspeedChat } from './deepspeed-chat.ts';
import type { Dialect } from './dialect.ts';
import { keel } from './keel.ts';
import { mlAgents } from './ml-agents.ts';
import { openaiBaselines } from './openai-baselines.ts';
import { openrlhf } from './openrlhf.ts';
import { pufferlib } from './pufferlib.ts';
import { rlGames } from './rl-games.ts';
import { rllib } from './rllib.ts';
import { rslRl } from './rsl-rl.ts';
import { sb3Contrib } from './sb3-contrib.ts';
import { skrl } from './skrl.ts';
import { stableBaselines3 } from './stable-baselines3.ts';
import { tianshou } from './tianshou.ts';
import { trlGrpo } from './trl-grpo.ts';
import { trlPpo } from './trl-ppo.ts';
import { trlPpoOld } from './trl-ppo-old.ts';
import { verl } from './verl.ts';

/** The trainers that are known, in the order in which they are tried. */
export const dialects: readonly Dialect[] = [
  keel,
  stableBaselines3,
  sb3Contrib,
  cleanrl,
  pufferlib,
  rllib,
  rlGames,
  rslRl,
  skrl,
  tianshou,
  mlAgents,
  openaiBaselines,
  trlGrpo,
  trlPpo,
  trlPpoOld,
  verl,
  openrlhf,
  deepspeedChat,
];
