/** What every environment promises, of those on MuJoCo, which are slow: apart, so that the two files run side by side. */
import { builtIn } from '../../../src/envs/built-in.ts';
import { makeEnv, makeVectorEnv, prepareEnv } from '../../../src/envs/index.ts';
import { envSeeds } from '../../../src/envs/vector/vector.ts';
import { testEnv, testVectorEnv } from '../support/contract.ts';

for (const { id } of builtIn.filter(({ slow }) => slow)) {
  await prepareEnv(id);
  testEnv(id, options => makeEnv(id, options), { slow: true });
  testVectorEnv(
    `${id} in process`,
    envCount => makeVectorEnv(id, { envCount }),
    () => makeEnv(id),
    envSeeds,
    { slow: true },
  );
}
