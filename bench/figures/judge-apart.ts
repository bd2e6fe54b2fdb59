/** One run in a process of its own: what to train comes as an argument, its record is the only line that is printed. */
import { judgeRun } from './judge-run.ts';
import type { FigureTask } from './tasks.ts';

const { task, seed, root, oneCore } = JSON.parse(process.argv[2]) as {
  readonly task: FigureTask;
  readonly seed: number;
  readonly root: string;
  readonly oneCore: boolean;
};
let tenth = 0;
const record = await judgeRun(task, seed, {
  root,
  oneCore,
  onRow(row, { step, totalSteps }) {
    const now = Math.floor((10 * step) / totalSteps);
    if (now <= tenth) return;
    tenth = now;
    const { 'episode/return': earned } = row;
    const score = earned === undefined ? '' : `, return ${earned.toFixed(1)}`;
    process.stderr.write(`${task.id}, seed ${seed}: ${10 * now} %${score}\n`);
  },
});
process.stdout.write(`${JSON.stringify(record)}\n`);
