/**
 * `npm run check`: every script of package.json that is named `check:…`, and the unit tests, as many at once as there are
 * cores. What a check says is shown when it is over, and all of them are run whatever the others find. `-- --no-tests`
 * leaves the tests out, where `npm test` has just run them all.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};
/** What takes longest comes first, so that no core waits for it in the end. */
const longest = ['test:unit', 'check:source'];
const waiting = [
  ...longest,
  ...Object.keys(scripts).filter(name => name.startsWith('check:') && !longest.includes(name)),
].filter(name => name !== 'test:unit' || !process.argv.includes('--no-tests'));

function run(name: string): Promise<boolean> {
  const started = performance.now();
  const child = spawn('npm', ['run', '--silent', name], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // The tests have one core, as every other check: to share out loads the same modules in each process.
    env: { ...process.env, VITEST_MAX_WORKERS: '1' },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', code => {
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(code === 0 ? `✓ ${name}, ${seconds} s` : `✗ ${name}, ${seconds} s\n${said.trimEnd()}\n`);
      resolve(code === 0);
    });
  });
}

async function turn(): Promise<boolean> {
  let fine = true;
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
    fine = (await run(name)) && fine;
  return fine;
}

const fine = await Promise.all(Array.from({ length: availableParallelism() }, turn));
process.exitCode = fine.every(Boolean) ? 0 : 1;
