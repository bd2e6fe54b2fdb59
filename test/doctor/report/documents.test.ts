/** The report as JSON, Markdown and HTML: the contract, and that text from a log stays text. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { fixOf } from '../../../src/doctor/fixes.ts';
import { renderHtml } from '../../../src/doctor/report/html.ts';
import { renderJson } from '../../../src/doctor/report/json.ts';
import { renderMarkdown } from '../../../src/doctor/report/markdown.ts';
import { runReport } from '../../../src/doctor/report/report-of-run.ts';
import { exitCodeOf, type Outcome, unreadable } from '../../../src/doctor/report/run-report.ts';
import { diagnosisOf, findingOf, healthyReport, runOf, sickReport } from './made.ts';
import { reportSchema } from './schema.ts';

const unread = unreadable('z.bin', 'a binary file that is no log');
const all: readonly Outcome[] = [
  healthyReport(),
  unread,
  sickReport(),
  sickReport({ verdict: 'watch', rootCause: null }),
];

const attack =
  '</style></script><script>alert(1)</script><img src=x onerror=alert(1)>"\'&`|*_[a](javascript:b)';
const hostile = (text: string): Outcome =>
  runReport(
    diagnosisOf({
      path: text,
      trainer: text,
      summary: text,
      notes: [text],
      findings: [
        findingOf({
          code: text,
          title: text,
          evidence: [text],
          fixes: [
            fixOf(text),
            fixOf({ code: text, aside: text }),
            fixOf({ code: `${text}\n${text}` }, [
              { setting: 'learningRate', name: text, from: null, value: text },
            ]),
          ],
          watch: text,
          marks: [{ metric: 'kl/step', theirs: text, from: 0, to: 4096 }],
        }),
        findingOf({ title: text, code: text }),
      ],
    }),
    runOf({ 'kl/step': [0.1, Number.NaN, 0.2] }, { 'kl/step': text }, { unit: text }),
  );
const wild = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.stringMatching(/^[<>&"'`/a-z=\n|\\*_-]{0,40}$/),
  fc.constant(attack),
);

describe('exit codes', () => {
  test('the worst verdict, and 3 only if nothing could be read', () => {
    const watch = sickReport({ verdict: 'watch' });
    expect(exitCodeOf([healthyReport()])).toBe(0);
    expect(exitCodeOf([healthyReport(), watch])).toBe(1);
    expect(exitCodeOf([healthyReport(), watch, sickReport()])).toBe(2);
    expect(exitCodeOf([healthyReport(), unread])).toBe(0);
    expect(exitCodeOf([unread])).toBe(3);
    expect(exitCodeOf([])).toBe(3);
    expect(exitCodeOf([watch], 'sick')).toBe(0);
    expect(exitCodeOf([watch, sickReport()], 'sick')).toBe(2);
  });
});

describe('JSON', () => {
  test('has the fields of the contract, also for what could not be read', () => {
    const { runs } = reportSchema.parse(JSON.parse(renderJson(all)));
    expect(runs.map(({ verdict }) => verdict)).toEqual(['healthy', null, 'sick', 'watch']);
    expect(runs[1]).toMatchObject({ path: 'z.bin', error: unread.error, findings: [] });
    expect(runs[2]).toMatchObject({
      path: 'logs/ppo_1',
      trainer: 'stable-baselines3',
      steps: 122_880,
      rootCause: 'learning-rate-too-high',
      confidence: 0.9,
    });
    expect(runs[2].findings[0]).toEqual(findingOf());
  });

  test('keeps every name as it is, and no terminal obeys it', () => {
    fc.assert(
      fc.property(wild, text => {
        const json = renderJson([hostile(text)]);
        expect(json).not.toMatch(/(?!\n)\p{Cc}|[\u2028-\u202e\u2066-\u2069]/u);
        expect(JSON.parse(json).runs[0].path).toBe(text);
      }),
    );
  });
});

/** Elements that need no end. */
const empty = new Set(['meta', 'br', 'rect', 'path', 'img']);

/** A small strict parser: every element ends where it should, every attribute has quotes. Gives elements and texts. */
function parse(html: string): {
  elements: { name: string; attributes: Map<string, string> }[];
  text: string;
} {
  const elements: { name: string; attributes: Map<string, string> }[] = [];
  const open: string[] = [];
  let text = '';
  let rest = html.replace(/^<!doctype html>\n/, '');
  while (rest !== '') {
    const style = open.at(-1) === 'style' ? /^[^<]*/.exec(rest)! : undefined;
    if (style !== undefined && style[0] !== '') {
      rest = rest.slice(style[0].length);
      continue;
    }
    const tag = /^<(\/?)([a-z][a-z0-9]*)((?:\s+[A-Za-z-]+="[^"<>]*")*)\s*(\/?)>/.exec(rest);
    if (tag !== null) {
      const [whole, close, name, attributes, selfClosed] = tag;
      if (close === '/') expect(open.pop()).toBe(name);
      else {
        elements.push({
          name: name,
          attributes: new Map([...attributes.matchAll(/([A-Za-z-]+)="([^"]*)"/g)].map(m => [m[1], m[2]])),
        });
        if (
          selfClosed !== '/' &&
          !(
            empty.has(name) &&
            !new RegExp(`^</${name}>`).test(rest.slice(whole.length)) &&
            !(name === 'path' && /^<title>/.test(rest.slice(whole.length)))
          )
        )
          open.push(name);
      }
      rest = rest.slice(whole.length);
      continue;
    }
    const plain = /^(?:[^<>&]|&(?:amp|lt|gt|quot|#39);)+/.exec(rest);
    expect(plain, `neither an element nor a text: ${rest.slice(0, 80)}`).not.toBeNull();
    text += plain![0];
    rest = rest.slice(plain![0].length);
  }
  expect(open).toEqual([]);
  return { elements, text };
}

describe('HTML', () => {
  test('is well formed, loads nothing, runs nothing and allows only its own style', () => {
    const page = renderHtml(all, { madeAt: '2026-01-01' });
    const { elements, text } = parse(page);
    const names = new Set(elements.map(({ name }) => name));
    for (const name of ['script', 'link', 'img', 'iframe', 'object', 'form', 'base'])
      expect(names).not.toContain(name);
    for (const { attributes } of elements) {
      for (const [name, value] of attributes) {
        expect(name).not.toMatch(/^on|^style$|^src$/i);
        if (name === 'href') expect(value).toMatch(/^#run-\d+$/);
      }
    }
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)![1];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(page).toContain(`default-src &#39;none&#39;; style-src &#39;sha256-${hash}&#39;`);
    expect(page).not.toMatch(/url\(|@import|https?:/);
    expect(text).toContain('The learning rate is too high');
    expect(text).toContain('4 runs: 1 sick, 1 watch, 1 healthy, 1 could not be read');
  });

  test('every picture has a name and a description, every id is unique, every link leads somewhere', () => {
    const { elements } = parse(renderHtml(all));
    const ids = elements.flatMap(({ attributes }) => attributes.get('id') ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    const pictures = elements.filter(({ name }) => name === 'svg');
    expect(pictures.length).toBeGreaterThanOrEqual(5);
    for (const { attributes } of [...pictures, ...elements.filter(({ name }) => name === 'article')]) {
      for (const id of attributes.get('aria-labelledby')!.split(' ')) expect(ids).toContain(id);
    }
    for (const { attributes } of elements) {
      const link = attributes.get('href');
      if (link !== undefined) expect(ids).toContain(link.slice(1));
    }
  });

  test('text from a log stays text, whatever it is', () => {
    const harmless = parse(renderHtml([hostile('x')])).elements.map(({ name }) => name);
    fc.assert(
      fc.property(wild, text => {
        const { elements } = parse(renderHtml([hostile(text)]));
        const allowed = new Set([...harmless, 'code', 'pre', 'ul', 'li', 'p', 'span', 'details', 'summary']);
        for (const { name } of elements) expect(allowed).toContain(name);
      }),
      { numRuns: 150 },
    );
  });

  test('shows the bands of the KL, the cited stretch and what was not finite', () => {
    const page = renderHtml([hostile('x')]);
    expect(page).toMatch(/<rect class="band bad"/);
    expect(page).toMatch(/<g class="mark critical"><rect/);
    expect(page).toMatch(/<path class="broken"/);
    expect(page).toContain('1 values are not finite.');
    expect(renderHtml([healthyReport()])).not.toMatch(/class="mark|class="broken/);
  });

  test('no coordinate is NaN, even of extreme values', () => {
    const number = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, 1e308, -1e308, 0, 5e-324));
    fc.assert(
      fc.property(fc.array(number, { maxLength: 20 }), values => {
        const report = runReport(diagnosisOf(), runOf({ 'kl/step': values, 'loss/value': values }));
        for (const match of renderHtml([report]).matchAll(/ (?:d|x|y|width|height)="([^"]*)"/g)) {
          expect(match[1]).not.toMatch(/NaN|Infinity|undefined|e\+/);
        }
      }),
    );
  });

  test('a thousand runs are a table and a hundred stories', () => {
    const page = renderHtml(Array.from({ length: 1000 }, (_, i) => healthyReport(`runs/${i}`)));
    expect(page.match(/<article/g)).toHaveLength(100);
    expect(page.match(/<tr>/g)).toHaveLength(1001);
    expect(page).toContain('900 runs more');
  });
});

describe('Markdown', () => {
  test('tells what the terminal tells', () => {
    const text = renderMarkdown(all);
    for (const part of [
      '| **sick** | `logs/ppo_1` | stable-baselines3 | 122,880 steps | The learning rate is too high |',
      '| unread | `z.bin` | | | a binary file that is no log |',
      '## sick: The learning rate is too high',
      '```\nPPO(..., learning_rate=1e-4)\n```',
      '**Then watch:** train/approx\\_kl should stay below 0.02.',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain('Nothing wrong');
    expect(renderMarkdown([healthyReport()])).toContain('Nothing wrong');
  });

  test('text from a log makes no markup, calls nobody and links nowhere', () => {
    const text = renderMarkdown([hostile(`${attack} @everyone #12 http://evil.example`)]);
    const outside = text
      .replaceAll(/^(`{3,})\n[\s\S]*?\n\1$/gm, '')
      .replaceAll('\\`', '')
      .replaceAll(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, '');
    expect(outside).not.toMatch(/<[a-z/!]/i);
    expect(outside).not.toMatch(/@everyone|(?<!&)#12|http:\/\//);
    expect(outside).not.toMatch(/(?<!\\)\]\(/);
  });

  test('every row of a table has as many cells as its head', () => {
    fc.assert(
      fc.property(wild, wild, (path, error) => {
        const lines = renderMarkdown([hostile(path), { path, error, why: error }]).split('\n');
        const cells = (line: string): number => line.replaceAll(/\\./g, '').split('|').length;
        const first = lines.findIndex(line => line.startsWith('| verdict'));
        for (const line of lines.slice(first, first + 4)) expect(cells(line), line).toBe(7);
      }),
    );
  });
});

test('the schema refuses what breaks the contract', () => {
  expect(() => reportSchema.parse({ runs: [{ path: 'x', verdict: 'fine' }] })).toThrow(z.ZodError);
});
