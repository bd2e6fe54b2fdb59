/** What every environment promises, of those on MuJoCo, which are slow: apart, so that the two files run side by side. */
import { findEnv, listEnvs, makeEnv, makeVectorEnv, prepareEnv } from '../../../src/envs/index.ts';
import { envSeeds } from '../../../src/envs/vector/vector.ts';
import { testEnv, testVectorEnv } from '../support/contract.ts';

for (const { id } of listEnvs().filter(env => findEnv(env.id).definition.slow)) {
  await prepareEnv(id);
  testEnv(id, options => makeEnv(id, options));
  testVectorEnv(
    `${id} in process`,
    envCount => makeVectorEnv(id, { envCount }),
    () => makeEnv(id),
    envSeeds,
  );
}
