import { listEnvs, makeEnv, makeVectorEnv, prepareEnv, probeBoth } from '../../src/envs/index.ts';
import { envSeeds } from '../../src/envs/vector/vector.ts';
import { testEnv, testVectorEnv } from './support/contract.ts';

for (const { id } of listEnvs()) {
  await prepareEnv(id);
  testEnv(id, options => makeEnv(id, options));
  testVectorEnv(
    `${id} in process`,
    envCount => makeVectorEnv(id, { envCount }),
    () => makeEnv(id),
    envSeeds,
  );
}

testEnv('ProbeBoth-v0, continuous', options => probeBoth({ actions: 'continuous', ...options }));
