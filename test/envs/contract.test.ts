import { builtIn } from '../../src/envs/built-in.ts';
import { makeEnv, makeVectorEnv, probeBoth } from '../../src/envs/index.ts';
import { envSeeds } from '../../src/envs/vector/vector.ts';
import { testEnv, testVectorEnv } from './support/contract.ts';

// Slow ones have a file of their own (mujoco/contract.test.ts); what other tests register is not Keel's.
for (const { id } of builtIn.filter(({ slow }) => !slow)) {
  testEnv(id, options => makeEnv(id, options));
  testVectorEnv(
    `${id} in process`,
    envCount => makeVectorEnv(id, { envCount }),
    () => makeEnv(id),
    envSeeds,
  );
}

testEnv('ProbeBoth-v0, continuous', options => probeBoth({ actions: 'continuous', ...options }));
