/** MuJoCo's WebAssembly, loaded once a thread and only when an environment that needs it is asked for. */
import type { MainModule } from '@mujoco/mujoco';
import { EnvError, fail, messageOf } from '../errors.ts';

let loading: Promise<MainModule> | undefined;
let loaded: MainModule | undefined;

/** Loads MuJoCo; takes some tenths of a second the first time in a thread. */
export async function loadEngine(): Promise<void> {
  loading ??= import('@mujoco/mujoco').then(module => module.default());
  try {
    loaded = await loading;
  } catch (error) {
    loading = undefined;
    throw new EnvError('env-threw', `MuJoCo did not load: ${messageOf(error)}: reinstall @mujoco/mujoco`, {
      cause: error,
    });
  }
}

/** MuJoCo, which must have been loaded. @internal */
export function engine(): MainModule {
  return (
    loaded ?? fail('env-threw', 'MuJoCo is not loaded yet: call await prepareEnv(id) once before makeEnv(id)')
  );
}
