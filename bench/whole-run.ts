import { listRuns } from '../src/runs/index.ts';

/**
 * The finished run in a directory of its own: as it is if it is whole, gone on with if it was stopped, else made now. So a bench
 * of hours can be stopped and begun again.
 */
export async function wholeRun(
  root: string,
  begin: (root: string) => Promise<{ readonly dir: string }>,
  goOn: (dir: string) => Promise<unknown>,
): Promise<string> {
  const [there] = listRuns([root]).runs;
  if (!there) return (await begin(root)).dir;
  if (there.manifest.status !== 'finished') await goOn(there.dir);
  return there.dir;
}
