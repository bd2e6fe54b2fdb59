import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { RunError } from '../../src/base/errors.ts';
import {
  compareMetricIds,
  findMetric,
  headlineMetrics,
  isMetricId,
  isTimeKey,
  metricGroups,
  metrics,
  requireMetric,
} from '../../src/metrics/registry.ts';

/** Said again, from the design and the issue: a name that vanishes breaks logs and pages that have it. */
const promised = `kl/step kl/step_k1 kl/step_k3 kl/step_raw kl/ref kl/sampler kl/coef kl/ref_coef
  loss/policy loss/value loss/total policy/entropy policy/entropy_relative policy/std policy/saturated_actions policy/dead_units policy/ratio_mean
  policy/clip_fraction value/explained_variance value/mean adv/mean adv/std reward/mean reward/std return/mean
  episode/return episode/return_best episode/length episode/count grad/norm train/lr train/lr_critic train/clip_range
  train/epochs_run train/minibatches_run train/early_stop train/skipped guard/backtracks guard/scale
  time/steps_per_second time/elapsed_s time/collect_s time/update_s time/log_s train/step train/iteration`.split(
  /\s+/,
);

describe('registry', () => {
  it('has every name that was promised', () => {
    for (const id of promised) expect(requireMetric(id).id).toBe(id);
  });

  it('has no name that nobody writes: a row of ours, a dialect, or a log of its own', () => {
    const src = fileURLToPath(new URL('../../src/', import.meta.url));
    const writers = ['algos', 'rollout', 'runs', 'envs', 'doctor/dialects'].flatMap(folder =>
      readdirSync(join(src, folder), { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.ts'))
        .map(name => readFileSync(join(src, folder, name), 'utf8')),
    );
    const isWritten = (id: string): boolean => {
      const [stem, rest] = id.split('<name>');
      const spellings = rest === undefined ? [`'${id}'`] : [`\`${stem}\${`, `'${stem}'`];
      return writers.some(text => spellings.some(spelling => text.includes(spelling)));
    };
    // Names that a log of someone's own may have, by `keel doctor --map`.
    const forMaps = ['policy/std/<name>'];
    expect(metrics.map(({ id }) => id).filter(id => !isWritten(id))).toEqual(forMaps);
    expect(isWritten('loss/of_nobody')).toBe(false);
  });

  it('has whole, unique entries', () => {
    const groups = new Set(metricGroups.map(group => group.id));
    expect(new Set(metrics.map(metric => metric.id)).size).toBe(metrics.length);
    for (const { id, group, title, unit, doc, healthy } of metrics) {
      expect(groups, id).toContain(group);
      expect(isMetricId(id.replace('<name>', 'x')), id).toBe(true);
      expect(title, id).toMatch(/^[A-Z].*[^.]$/);
      expect(unit, id).not.toBe('');
      for (const text of healthy === undefined ? [doc] : [doc, healthy]) {
        expect(text, id).toMatch(/^\S.{8,}\.$|^[01]\.$/);
        expect(text, id).not.toContain('\n');
      }
    }
    for (const group of groups) expect(metrics.map(metric => metric.group)).toContain(group);
    for (const id of headlineMetrics) requireMetric(id);
  });

  it('types exactly what is a KL', () => {
    for (const { id, kl, unit } of metrics) {
      const isKl = id.startsWith('kl/') && !id.endsWith('coef');
      expect(kl !== undefined, id).toBe(isKl);
      if (isKl) expect(unit).toBe('nats');
      if (kl !== undefined) expect(id.startsWith(`kl/${kl.pair}`)).toBe(true);
    }
  });

  it('finds members of families, and only one level of them', () => {
    expect(findMetric('reward/part/fall')?.id).toBe('reward/part/<name>');
    expect(findMetric('env/queue_p95')?.id).toBe('env/<name>');
    expect(findMetric('policy/std')?.id).toBe('policy/std');
    expect(findMetric('policy/std/0')?.id).toBe('policy/std/<name>');
    for (const id of [
      'reward/part/',
      'reward/part/a/b',
      'reward/part/a b',
      'reward/part',
      'env/<name>',
      'env/..',
    ]) {
      expect(findMetric(id), id).toBeUndefined();
    }
  });

  it('names the nearest to an unknown name, in one line', () => {
    expect(() => requireMetric('kl/setp')).toThrow('unknown metric "kl/setp": did you mean kl/step?');
    expect(() => requireMetric('policy/clipfraction')).toThrow('did you mean policy/clip_fraction?');
    expect(() => requireMetric('zzz')).toThrow(/unknown metric "zzz": use one of .* env\/<name>/);
    expect(() => requireMetric('env/a b')).toThrow(/a name after env\/ has letters/);
    for (const id of ['', '__proto__', 'constructor', 'a\nb', 'x'.repeat(10_000), 'env/'.padEnd(300, 'x')]) {
      expect(() => requireMetric(id)).toThrow(RunError);
      expect(() => requireMetric(id)).toThrow(/^[^\n]{1,300}$/);
    }
  });

  it('orders progress first, times last, what it does not know before them', () => {
    const ids = [
      'time/log_s',
      'time/zzz',
      'zzz/new',
      'env/b',
      'env/a',
      'kl/step',
      'train/step',
      'train/iteration',
    ];
    expect(ids.sort(compareMetricIds)).toEqual([
      'train/iteration',
      'train/step',
      'kl/step',
      'env/a',
      'env/b',
      'zzz/new',
      'time/log_s',
      'time/zzz',
    ]);
    const inOrder = metrics.map(metric => metric.id);
    const firstTime = inOrder.findIndex(isTimeKey);
    expect(inOrder.slice(firstTime).every(isTimeKey)).toBe(true);
  });

  it('needs nothing of Node, nor does the schema of runs', () => {
    const seen = new Set<string>();
    const visit = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      const text = readFileSync(path, 'utf8');
      expect(text, path).not.toMatch(/\b(process|Buffer|require)\b[.(]/);
      for (const [, target] of text.matchAll(/from '([^']+)'/g)) {
        if (target.startsWith('.')) visit(fileURLToPath(new URL(target, `file://${path}`)));
        else expect(target).toBe('zod/mini');
      }
    };
    for (const path of ['src/metrics/registry.ts', 'src/runs/schema.ts']) {
      visit(fileURLToPath(new URL(`../../${path}`, import.meta.url)));
    }
    expect(seen.size).toBeGreaterThan(4);
  });
});
