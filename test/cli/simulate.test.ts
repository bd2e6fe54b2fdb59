import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { columnsOf } from '../../src/base/terminal.ts';
import { clusterOf } from '../../src/server/cluster.ts';
import { keel, scratch } from './support/keel.ts';

const cwd = scratch();

describe('keel simulate cluster', () => {
  test('a table of all rules and plots, within 80 columns', async () => {
    const { code, stdout, stderr } = await keel(['simulate', 'cluster', '--requests', '800'], { cwd });
    expect(code, stderr).toBe(0);
    for (const name of ['round-robin', 'least-finish', 'power-of-two', 'least-added'])
      expect(stdout).toContain(name);
    for (const measure of ['end to end', 'first token', 'between tokens', 'per token', 'until scheduled'])
      expect(stdout).toMatch(new RegExp(`${measure}( +[\\d.e-]+){4}\\n`));
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(/requests\/s, .* tokens\/s, .*% busy, \d+ evicted, \$/);
    expect(stdout).toMatch(/[▁▂▃▄▅▆▇█]{10}/);
    expect(stdout.split('\n').filter(line => columnsOf(line) > 80)).toEqual([]);
  });

  test('JSON; the same seed gives the same answer; failures and a trace', async () => {
    const trace = join(cwd, 'trace.csv');
    const lines = Array.from({ length: 60 }, (_, i) => `${i * 0.2},${200 + i},${20 + i}`);
    writeFileSync(trace, `arrived_at,num_prefill_tokens,num_decode_tokens\n${lines.join('\n')}\n`);
    const args = [
      'simulate',
      'cluster',
      '--workload',
      trace,
      '--router',
      'random,least-tokens',
      '--failures',
      '20/5',
      '--json',
    ];
    const [one, two] = await Promise.all([keel(args, { cwd }), keel(args, { cwd })]);
    expect(one.code, one.stderr).toBe(0);
    expect(two.stdout).toBe(one.stdout);
    const { routers, ratePerS } = JSON.parse(one.stdout);
    expect(ratePerS).toBeCloseTo(5, 1);
    expect(routers.map((r: { router: string }) => r.router)).toEqual(['random', 'least-tokens']);
    expect(routers[0].endToEnd.p99).toBeGreaterThanOrEqual(routers[0].endToEnd.p50);
  });

  test('a trace of one request has no rate; one that fits no replica is named by its line', async () => {
    const trace = join(cwd, 'few.csv');
    writeFileSync(trace, 'arrived_at,num_prefill_tokens,num_decode_tokens\n3,200,20\n');
    const args = ['simulate', 'cluster', '--workload', trace, '--router', 'random'];
    expect((await keel(args, { cwd })).stdout.replaceAll(/\s+/g, ' ')).toContain('1 request all at once');
    writeFileSync(trace, 'arrived_at,num_prefill_tokens,num_decode_tokens\n3,200,0\n4,200000,20\n');
    expect((await keel(args, { cwd })).stderr.replaceAll(/\s+/g, ' ')).toMatch(
      /few\.csv:3: the request needs the keys and values of 200019 tokens, which fit no replica/,
    );
  });

  test.each([
    [['simulate', 'city'], /nothing to simulate called city: use cluster/],
    [['simulate', 'cluster', '--router', 'fastest'], /the router "fastest" is unknown/],
    [['simulate', 'cluster', '--replicas', ','], /a cluster needs a replica/],
    [
      ['simulate', 'cluster', '--workload', 'chat'],
      /the workload chat is unknown: use conversation, code or a trace/,
    ],
    [['simulate', 'cluster', '--workload', './none.csv'], /none\.csv/],
    [['simulate', 'cluster', '--load', '1', '--rate', '2'], /--load and --rate say the same/],
    [['simulate', 'cluster', '--load', '-1'], /-1 is not a number from 0/],
    [
      ['simulate', 'cluster', '--prompt', 'fixed:60000', '--requests', '5'],
      /request 0 needs the keys and values of 6\d{4} tokens, which do not fit replica 3 \(a40 holds/,
    ],
    [['simulate', 'cluster', '--failures', 'often'], /--failures often cannot be read/],
    [['simulate', 'cluster', '--failures', '../..'], /--failures \.\.\/\.\. cannot be read/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await keel(args, { cwd });
    expect(stderr).toMatch(message);
    expect(code).toBe(args.includes('./none.csv') ? 1 : 2);
  });

  test('clone, train from it, and simulate both: a recording is beside each run', async () => {
    const set = (...pairs: string[]): string[] => pairs.flatMap(pair => ['--set', pair]);
    const small = set('envs=2', 'hidden=[8]', 'envOptions.requests=64');
    const rollout = set('stepsPerRollout=32', 'minibatchSize=32');
    const cloned = await keel(
      ['clone', 'cluster', '--demonstrators', 'least-finish', '--steps', '256', '--epochs', '2', ...small],
      { cwd },
    );
    expect(cloned.code, cloned.stderr).toBe(0);
    expect(cloned.stdout).toMatch(/keel train cluster --from/);
    const trained = await keel(
      ['train', 'cluster', '--from', 'last', '--steps', '64', '--no-dash', ...small, ...rollout],
      { cwd },
    );
    expect(trained.code, trained.stderr).toBe(0);
    const ids = readdirSync(join(cwd, 'runs'));
    expect(ids.length).toBe(2);
    const { code, stderr } = await keel(
      ['simulate', 'cluster', '--router', `${ids.join(',')}`, '--requests', '200'],
      { cwd },
    );
    expect(code, stderr).toBe(0);
    for (const id of ids) {
      const { timeline, problem } = clusterOf(join(cwd, 'runs', id));
      expect(problem).toBeNull();
      expect(timeline!.replicas).toEqual(['h100', 'a100', 'a100', 'a40']);
      expect(timeline!.decisions.length).toBe(60);
    }
  });
});

describe('the recording, as the server reads it', () => {
  test('nothing, damage and another version are told apart', () => {
    const dir = join(cwd, 'fake');
    mkdirSync(dir);
    expect(clusterOf(dir)).toEqual({ timeline: null, problem: null });
    writeFileSync(join(dir, 'cluster.json'), '{"version":1');
    expect(clusterOf(dir).problem).toMatch(/is damaged/);
    writeFileSync(join(dir, 'cluster.json'), JSON.stringify({ version: 1, replicas: ['a'], timeS: [1] }));
    expect(clusterOf(dir).problem).toMatch(/another version/);
  });
});
