/** The page of `docs/dialects.md`, made of the dialects themselves. */
import { dialectTable } from './dialect-table.ts';
import { docText } from './rule-page.ts';

/** In a table a pipe ends a cell, also inside of code. */
const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');

export function dialectPage(): string {
  const table = dialectTable();
  const kinds = { classic: 'environments', 'language-model': 'language models' } as const;
  return `${[
    '<!-- Made from src/doctor/dialects by tools/rule-pages.ts: change it there. -->',
    '# Trainers that the doctor knows',
    "A trainer is recognised by the names in its log; `keel doctor --trainer <name>` says it where they do not tell. Each name is read as one of Keel's ([metrics.md](metrics.md)); what it misses, `--map theirs=ours` adds.",
    [
      '| trainer | `--trainer` | for |',
      '|---|---|---|',
      ...table.map(({ trainer, title, kind }) => `| ${cell(title)} | \`${trainer}\` | ${kinds[kind]} |`),
    ].join('\n'),
    ...table.flatMap(({ title, remarks, metrics }) => [
      `## ${title}`,
      ...(remarks === '' ? [] : [docText(remarks)]),
      ...(metrics.length === 0
        ? []
        : [
            [
              '| in the log | is | |',
              '|---|---|---|',
              ...metrics.map(({ theirs, id, kl, note }) => {
                const names = theirs.map(name => `\`${cell(name)}\``);
                const about = [kl, note]
                  .filter(text => text !== undefined && text !== '')
                  .map(text => docText(cell(text!)));
                return `| ${names.join(' or ')} | \`${cell(id)}\` | ${about.join('; ')} |`;
              }),
            ].join('\n'),
          ]),
    ]),
  ].join('\n\n')}\n`;
}
