import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { ExamineProgress } from '../../doctor/doctor.ts';
import { examinePaths } from '../../doctor/examine-paths.ts';
import { clean } from '../../doctor/report/clean.ts';
import { isRead, isUnreadable, type Outcome } from '../../doctor/report/run-report.ts';
import { writeReport } from '../../doctor/report/write.ts';
import { threadExaminer } from '../../doctor/thread-examiner.ts';
import { MOST_RUNS } from '../../report/limits.ts';
import { renderReport } from '../../report/page.ts';
import { resolveRun } from '../../runs/store.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type RunFlags, runDirOption } from '../options.ts';

interface ReportFlags extends RunFlags {
  readonly out: string;
}

export function define(command: Command): void {
  command
    .argument('<runs...>', "runs of Keel by their names, or any trainer's log files and directories")
    .option('-o, --out <file>', 'where the page is written', 'keel-report.html')
    .addOption(runDirOption());
}

export const help = `The page needs nothing else: it opens from a disk, and loads nothing. Runs that
differ only in their seed are one line with an interval; each can be shown alone.`;

export const examples: Examples = [
  ['report last', "Keel's own newest run"],
  ['report logs/ppo_1 logs/ppo_2 --out compared.html', "any trainer's logs"],
];

export async function run(context: Context, paths: string[], { out, runDir }: ReportFlags): Promise<void> {
  if (!/\.html?$/i.test(out)) throw new UsageError(`--out ${clean(out)}: give it a name that ends in .html`);
  const places = paths.map(path => (existsSync(path) ? path : resolveRun(path, [runDir]).dir));
  const outcomes: Outcome[] = [];
  let [found, left] = [0, 0];
  const onProgress = ({ done, total }: ExamineProgress): void => {
    [found, left] = [total, total - done - 1];
  };
  const logs = examinePaths(places, { whole: true, onProgress }, threadExaminer());
  let next = await logs.next();
  for (let read = 0; !next.done; next = await logs.next()) {
    outcomes.push(next.value);
    if (isRead(next.value) && ++read === MOST_RUNS && left > 0) break;
  }
  const notes = next.done
    ? next.value.notes
    : [`${found} runs were found, and the first ${MOST_RUNS} are in the page: name those that you want`];
  for (const note of notes) context.note(`keel: ${clean(note)}`);
  for (const { error } of outcomes.filter(isUnreadable)) context.note(`keel: ${clean(error)}`);
  if (!outcomes.some(isRead)) throw new UsageError(`no run could be read: give a log that keel doctor reads`);
  writeReport(out, renderReport(outcomes, new Date().toISOString().slice(0, 10), notes));
  context.print(`wrote ${clean(out)}: open it in a browser`);
}
