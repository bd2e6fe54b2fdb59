/** All mutants: at least 200, over all folders of the sources and the page. */
import { algos } from './algos.ts';
import { base } from './base.ts';
import { cli } from './cli.ts';
import { doctor } from './doctor.ts';
import { engine } from './engine.ts';
import { envs } from './envs.ts';
import { grpo } from './grpo.ts';
import { kl } from './kl.ts';
import { lm } from './lm.ts';
import { metrics } from './metrics.ts';
import type { Mutant } from './mutant.ts';
import { nn } from './nn.ts';
import { ppo } from './ppo.ts';
import { rollout } from './rollout.ts';
import { runs } from './runs.ts';
import { server } from './server.ts';
import { studies } from './studies.ts';
import { tasks } from './tasks.ts';
import { view } from './view.ts';
import { web } from './web.ts';

export const mutants: readonly Mutant[] = [
  ...base,
  ...engine,
  ...nn,
  ...kl,
  ...metrics,
  ...envs,
  ...tasks,
  ...lm,
  ...rollout,
  ...runs,
  ...studies,
  ...ppo,
  ...grpo,
  ...algos,
  ...doctor,
  ...server,
  ...web,
  ...view,
  ...cli,
];
