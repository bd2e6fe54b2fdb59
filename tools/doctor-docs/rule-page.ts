/** The pages of `docs/rules/`, made of the rules themselves. */
import { causeText, causeTexts } from '../../src/doctor/report/causes.ts';
import { cureSentence, referenceLink } from '../../src/doctor/report/explain.ts';
import type { Rule } from '../../src/doctor/rules/rule.ts';

function referenceItem(reference: string): string {
  const link = referenceLink(reference);
  return link === reference ? `- ${reference}` : `- [${reference}](${link})`;
}

const generated = '<!-- Made from src/doctor/rules by tools/rule-pages.ts: change it there. -->';

/** Plain sentences as Markdown: what is not between backticks has no meaning in it. */
export function docText(text: string): string {
  return text
    .split('`')
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll('*', '\\*').replaceAll(/<(?=[a-z/!])/gi, '&lt;')))
    .join('`');
}

/** One rule's page. */
function rulePage({ code, title, text, causes, looksAt }: Rule): string {
  return `${[
    generated,
    `# ${title}`,
    `\`${code}\``,
    docText(text.means),
    `## What it looks for\n\n${docText(text.seen)}`,
    `Looks at: ${looksAt.map(id => `\`${id}\``).join(', ')}.`,
    `## What to do\n\n${docText(text.todo)}`,
    ...(cureSentence(code) === '' ? [] : [`## How often that has cured\n\n${docText(cureSentence(code))}`]),
    `## When it stays silent\n\n${docText(text.silent)}`,
    ...(causes.length === 0
      ? []
      : [
          `## What it may point to\n\n${causes.map(cause => `- [${causeText(cause).title}](README.md#${cause})`).join('\n')}`,
        ]),
    ...(text.references.length === 0
      ? []
      : [`## Where this was met\n\n${text.references.map(referenceItem).join('\n')}`]),
  ].join('\n\n')}\n`;
}

/** The list of all rules and root causes. */
function rulesIndex(rules: readonly Rule[]): string {
  const causes = causeTexts.map(({ code, title, meaning, remedy }) => {
    const seenBy = rules.filter(rule => rule.causes.includes(code));
    const by = seenBy.map(rule => `[\`${rule.code}\`](${rule.code}.md)`).join(', ');
    return `### ${code}\n\n**${title}.** ${meaning}\n\nWhat to do: ${remedy}${by === '' ? '' : `\n\nRules that may point to it: ${by}.`}`;
  });
  return `${[
    generated,
    '# Rules of the doctor',
    'Each rule has a stable code. `keel doctor --explain <code>` prints its page.',
    [
      '| code | what it sees | may point to |',
      '|---|---|---|',
      ...rules.map(
        ({ code, title, causes }) =>
          `| [\`${code}\`](${code}.md) | ${title} | ${causes.map(cause => `[${cause}](#${cause})`).join(', ')} |`,
      ),
    ].join('\n'),
    '## Root causes',
    ...causes,
  ].join('\n\n')}\n`;
}

/** Every file of `docs/rules/` by its name. */
export function rulePages(rules: readonly Rule[]): ReadonlyMap<string, string> {
  return new Map([
    ['README.md', rulesIndex(rules)],
    ...rules.map((rule): [string, string] => [`${rule.code}.md`, rulePage(rule)]),
  ]);
}
