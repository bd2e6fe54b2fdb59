/** Diagnoses everything under a path and prints how long it took and the most memory it held. */
import { diagnosePath, isUnreadable } from '../../src/doctor/index.ts';

const start = performance.now();
let runs = 0;
for await (const outcome of diagnosePath(process.argv[2] ?? '.')) {
  if (isUnreadable(outcome)) throw new Error(outcome.error);
  runs++;
}
const seconds = Math.round(performance.now() - start) / 1000;
const megabytes = Math.round(process.resourceUsage().maxRSS / 1024);
process.stdout.write(JSON.stringify({ runs, seconds, megabytes }));
