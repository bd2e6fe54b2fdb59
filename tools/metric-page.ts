/** Writes docs/metrics.md, what is logged, from its one list: `npx tsx tools/metric-page.ts`. A test fails where they differ. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { metricGroups, metrics } from '../src/metrics/registry.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/<(\w)/g, '\\<$1');

/** The page of the documentation. */
export function metricPage(): string {
  const groups = metricGroups.map(({ id, title }) => {
    const rows = metrics
      .filter(({ group }) => group === id)
      .map(
        metric =>
          `| \`${metric.id}\` | ${metric.unit === '1' ? '' : metric.unit} | ${cell(metric.doc)}${metric.healthy ? ` ${cell(metric.healthy)}` : ''} |`,
      );
    return `## ${title}\n\n| name | unit | |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return `# What is logged

One row an iteration, written after its update. A value is the mean over all minibatches of the update, weighted by their samples, unless
its line says otherwise. What does not apply (no episode ended, no reference) is absent. \`npx tsx tools/metric-page.ts\` writes this page
from the list that the log, the page and the doctor use.

${groups.join('\n')}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(fileURLToPath(new URL('../docs/metrics.md', import.meta.url)), metricPage());
