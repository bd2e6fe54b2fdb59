/** One run in a process of its own: what to train comes as an argument, its record is what it sends back. */
import { judgeRun } from './judge-run.ts';
import type { FigureTask } from './tasks.ts';

const { task, seed, ...options } = JSON.parse(process.argv[2]) as {
  readonly task: FigureTask;
  readonly seed: number;
  readonly preset: string;
  readonly root: string;
  readonly oneCore: boolean;
};
// Whoever asked is gone, killed perhaps: what is saved is gone on with by who asks next.
const orphaned = (): never => process.exit(1);
process.on('disconnect', orphaned);
let tenth = 0;
const record = await judgeRun(task, seed, {
  ...options,
  onRow(row, { step, totalSteps }) {
    const now = Math.floor((10 * step) / totalSteps);
    if (now <= tenth) return;
    tenth = now;
    const { 'episode/return': earned } = row;
    const score = earned === undefined ? '' : `, return ${earned.toFixed(1)}`;
    process.stderr.write(`${task.id}, seed ${seed}: ${10 * now} %${score}\n`);
  },
});
process.send!(record, () => {
  process.off('disconnect', orphaned);
  process.disconnect();
});
