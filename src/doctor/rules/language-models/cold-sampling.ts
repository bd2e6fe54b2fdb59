import { citeSetting, say, usual } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, soon } from '../words.ts';
import { citeEarly, early, long } from './levels.ts';

const l = limitsOf('cold-sampling', {
  rows: 8,
  temperature: 0.3,
  /** The entropy that is left at the start. */
  entropy: 0.2,
});

export const coldSampling: Rule = {
  code: 'cold-sampling',
  title: 'Sampling is so cold that completions are copies',
  looksAt: ['policy/entropy', 'reward/zero_std_groups', 'reward/mean'],
  causes: ['degenerate-groups'],
  text: {
    means:
      'At a temperature near 0 all completions of a prompt are the same or nearly so: a group has no differences to learn from, and what few there are weigh far too much.',
    seen: `A temperature of ${num(l.temperature)} or less and an entropy of ${num(l.entropy)} or less in the first tenth of the rows.`,
    todo: 'Sample at a temperature of 1.',
    silent: 'Where the temperature is not known, or the reward improves.',
    references: ['huggingface/trl#3857'],
  },
  check(run, signals) {
    const { temperature } = run.config;
    const entropy = long(signals.get('policy/entropy'), l.rows);
    const { progress } = signals;
    if (run.kind !== 'language-model' || temperature === undefined || temperature > l.temperature) return [];
    if (entropy === undefined || early(entropy) > l.entropy || progress?.improved) return [];
    return [
      finding('cold-sampling', {
        severity: 'critical',
        title: say`Completions are sampled at a temperature of ${citeSetting('temperature', temperature)}: ${name(entropy)} begins at ${citeEarly(entropy)}`,
        cause: 'degenerate-groups',
        confidence: 0.9,
        evidence: [say`the temperature is ${citeSetting('temperature', temperature)}; ${usual(0.6, 1.2)}`],
        fix: [change(run, { temperature: 1 }, 'sample at a temperature of 1')],
        watch: `${soon(run, signals.to - signals.from)} ${name(entropy)} should be above ${num(l.entropy)}`,
        marks: [mark(entropy, signals.from, signals.to)],
      }),
    ];
  },
};
