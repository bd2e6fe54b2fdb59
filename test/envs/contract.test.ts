import { findEnv, listEnvs, makeEnv, makeVectorEnv, probeBoth } from '../../src/envs/index.ts';
import { envSeeds } from '../../src/envs/vector/vector.ts';
import { testEnv, testVectorEnv } from './support/contract.ts';

// Slow ones have a file of their own (mujoco/contract.test.ts).
for (const { id } of listEnvs().filter(env => !findEnv(env.id).definition.slow)) {
  testEnv(id, options => makeEnv(id, options));
  testVectorEnv(
    `${id} in process`,
    envCount => makeVectorEnv(id, { envCount }),
    () => makeEnv(id),
    envSeeds,
  );
}

testEnv('ProbeBoth-v0, continuous', options => probeBoth({ actions: 'continuous', ...options }));
