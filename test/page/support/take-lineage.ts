/**
 * Takes docs/pictures/lineage.png of a real run: `npx tsx test/page/support/take-lineage.ts`. CartPole with a learning rate
 * that is too high and without the guard; then what the doctor advises, by the button of the page.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type {
  ActionAnswer,
  CheckpointsAnswer,
  DiagnosisAnswer,
  RunDetail,
  RunList,
} from '../../../src/server/api.ts';
import { childEnv, keelCommand } from '../../../src/server/children.ts';
import { serve } from '../../../src/server/serve.ts';
import { launch, openPage } from './browser.ts';
import { builtPage } from './built-page.ts';

/** Where it goes: another directory to look at it first. */
const folder = process.argv[2] ?? fileURLToPath(new URL('../../../docs/pictures', import.meta.url));
const sick = [
  'learningRate=0.05',
  'learningRateSchedule=constant',
  'guard=null',
  'targetKl=null',
  'checkpointEvery=10',
  'keepEvery=10',
];

async function train(root: string): Promise<void> {
  const [program, ...first] = keelCommand();
  const args = ['train', 'cartpole', '--steps', '60k', '--seed', '3', '--no-dash', '--run-dir', root];
  const child = spawn(program, [...first, ...args, ...sick.flatMap(pair => ['--set', pair])], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: childEnv(),
  });
  const code = await new Promise(done => child.on('close', done));
  if (code !== 0) throw new Error(`training ended with ${code}`);
}

async function main(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-lineage-'));
  await train(root);
  const server = await serve({
    roots: [root],
    port: 0,
    page: await builtPage(),
    foreign: false,
    token: false,
  });
  const at = (path: string) => `${server.url}api/${path}`;
  const get = async <T>(path: string): Promise<T> => (await fetch(at(path))).json() as Promise<T>;
  const until = async <T>(find: () => Promise<T | undefined>): Promise<T> => {
    for (;;) {
      const found = await find();
      if (found !== undefined) return found;
      await sleep(500);
    }
  };
  const { id } = await until(async () =>
    (await get<RunList>('runs')).runs.find(({ verdict }) => verdict !== null),
  );
  const { diagnosis, remedy } = await until(async () => {
    const said = await get<DiagnosisAnswer>(`runs/${id}/diagnosis`);
    return said.diagnosis ? said : undefined;
  });
  console.info(diagnosis?.summary, remedy);
  if (!remedy) throw new Error('the doctor advises nothing: the run is not as sick as it should be');
  const { checkpoints } = await get<CheckpointsAnswer>(`runs/${id}/checkpoints`);
  // Where the rate was too high from the start there is none from before the fault: then what it had learnt at its best.
  const { step: best } = checkpoints.find(({ isBest }) => isBest)!;
  const checkpoint = remedy.fork?.checkpoint ?? best;
  const answer = await fetch(at(`runs/${id}/actions`), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'restart', checkpoint, set: remedy.set }),
  });
  const { newRun, message } = (await answer.json()) as ActionAnswer;
  console.info(message);
  await until(async () => {
    const { run } = await get<RunDetail>(`runs/${newRun}`);
    return run.state === 'finished' && run.verdict !== null ? run : undefined;
  });
  const browser = await launch();
  const page = await openPage(browser, `${server.url}#/runs/${newRun}`, { width: 1080, height: 900 });
  await page.locator('.lineage path').first().waitFor({ state: 'attached' });
  await page.waitForTimeout(1000);
  await page.locator('.lineage').screenshot({ path: join(folder, 'lineage.png') });
  await browser.close();
  await server.close();
  rmSync(root, { recursive: true, force: true });
}

await main();
