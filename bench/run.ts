import { Refused } from './refuse.ts';

/** `npm run bench -- <name>`: runs one benchmark, which prints a JSON object a line. */
const benches: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  arithmetic: () => import('./arithmetic.ts'),
  autopilot: () => import('./autopilot.ts'),
  chess: () => import('./chess.ts'),
  crash: () => import('./crash.ts'),
  cures: () => import('./cures.ts'),
  dash: () => import('./dash.ts'),
  doctor: () => import('./doctor.ts'),
  engine: () => import('./engine.ts'),
  figures: () => import('./figures.ts'),
  fuzz: () => import('./fuzz.ts'),
  gpt: () => import('./gpt.ts'),
  'kl-gradients': () => import('./kl-gradients.ts'),
  learning: () => import('./learning.ts'),
  mutants: () => import('./mutants.ts'),
  ppo: () => import('./ppo.ts'),
  python: () => import('./python.ts'),
  robots: () => import('./robots.ts'),
  router: () => import('./router.ts'),
  scaling: () => import('./scaling.ts'),
  startup: () => import('./startup.ts'),
  sweep: () => import('./sweep.ts'),
};

const name = process.argv[2] ?? '';
const load = benches[name];
if (!load) {
  process.stderr.write(`bench '${name}' is unknown: use ${Object.keys(benches).join(', ')}\n`);
  process.exit(2);
}
try {
  await (await load()).run();
} catch (error) {
  // Wrong flags are parseArgs' to find; whatever else is no refusal is a fault, and keeps its trace.
  const { code } = error as NodeJS.ErrnoException;
  if (!(error instanceof Refused || code?.startsWith('ERR_PARSE_ARGS'))) throw error;
  process.stderr.write(`${(error as Error).message.split('\n')[0]}\n`);
  process.exit(2);
}
