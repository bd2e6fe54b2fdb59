/** What the list of runs says can be relied on: damaged runs are one row each, parents are found, seeds are one group. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RunWriter } from '../../src/runs/index.ts';
import type {
  AllSettings,
  DiagnosisAnswer,
  OutputAnswer,
  RunList,
  RunSummary,
  SettingsAnswer,
} from '../../src/server/api.ts';
import { plainText } from '../../src/server/output.ts';
import { groupOf } from '../../src/server/runs/group.ts';
import { start, until } from './support/client.ts';
import { makeRun, scratch } from './support/make-run.ts';

const listed = async (get: Awaited<ReturnType<typeof start>>['get']): Promise<readonly RunSummary[]> =>
  (await get('/api/runs')).json<RunList>().runs;

describe('a run of Keel without a whole manifest', () => {
  test('is one row, unreadable, with what to do; its files are no runs', async () => {
    const root = scratch();
    makeRun(root, 'good', 3);
    const missing = makeRun(root, 'missing', 30);
    await missing.writer.checkpoint({
      iteration: 30,
      step: 3000,
      files: {},
      state: {},
    } as unknown as Parameters<RunWriter['checkpoint']>[0]);
    const broken = makeRun(root, 'broken', 30);
    const deep = makeRun(join(root, 'a', 'b'), 'deep', 30);
    for (const { writer } of [missing, broken, deep]) writer.end('stopped', 'enough');
    rmSync(join(missing.dir, 'manifest.json'));
    rmSync(join(deep.dir, 'manifest.json'));
    writeFileSync(join(broken.dir, 'manifest.json'), '{"kind":"keel-run","sch');
    const { get, server } = await start({ roots: [root] });
    expect(await server.index.searched(20_000)).toBe(true);
    await until(async () => (await listed(get)).length === 4, 'four rows');
    const rows = await listed(get);
    expect(rows.map(({ name }) => name).sort()).toEqual(['a/b/deep', 'broken', 'good', 'missing']);
    for (const name of ['a/b/deep', 'broken', 'missing']) {
      const row = rows.find(run => run.name === name)!;
      expect(row).toMatchObject({ state: 'unreadable', trainer: 'keel', verdict: null });
      expect(row.problem).toMatch(/^its manifest\.json is .*put a (whole )?copy of it back, or delete/);
    }
    const id = rows.find(({ name }) => name === 'missing')!.id;
    const { reason } = (await get(`/api/runs/${id}/diagnosis`)).json<DiagnosisAnswer>();
    expect(reason).toContain('manifest.json is missing');
  });
});

test('a run that ended without a row says that there is nothing to judge', async () => {
  const root = scratch();
  makeRun(root, 'empty').writer.end('stopped', 'stopped by its user');
  const { get } = await start({ roots: [root] });
  const [{ id }] = await listed(get);
  const reason = async (): Promise<string | null> =>
    (await get(`/api/runs/${id}/diagnosis`)).json<DiagnosisAnswer>().reason;
  await until(
    async () => ((await reason()) ?? '').includes('ended before its first iteration'),
    'it says so',
  );
});

describe('who belongs together', () => {
  const create = (root: string, id: string, seed: number, config: object, parent?: string): RunWriter =>
    RunWriter.create(
      {
        algorithm: 'ppo',
        environment: { id: 'CartPole-v1', version: '1', options: {}, reward: {} },
        config: { steps: 1000, learningRate: 3e-4, seed, ...config },
        seed,
        versions: {},
        ...(parent === undefined ? {} : { parent: { id: parent, step: 100 } }),
      },
      { root, id },
      { csv: false, tensorboard: false },
    );

  test('a parent is found by the name that its child has of it, and seeds are one group', async () => {
    const [root, other] = [scratch(), scratch()];
    for (const [id, seed] of [
      ['one', 1],
      ['two', 2],
    ] as const)
      create(root, id, seed, {}).end('stopped', 'enough');
    create(root, 'three', 3, { learningRate: 1e-3 }).end('stopped', 'enough');
    create(root, 'child', 1, {}, 'one').end('stopped', 'enough');
    create(other, 'far-child', 1, {}, 'two').end('stopped', 'enough');
    create(other, 'orphan', 1, {}, 'gone').end('stopped', 'enough');
    // What the page begins anew is no child in its manifest: its notes say in whose place it was begun.
    const notes = { tags: [], note: '', archived: false, insteadOf: 'three' };
    create(root, 'anew', 3, { learningRate: 1e-4 }).end('stopped', 'enough');
    writeFileSync(join(root, 'anew', 'notes.json'), JSON.stringify(notes));
    const { get } = await start({ roots: [root, other] });
    await until(async () => (await listed(get)).length === 7, 'all');
    const by = Object.fromEntries((await listed(get)).map(run => [run.name, run]));
    expect(by.child.parentId).toBe(by.one.id);
    expect(by['far-child'].parentId).toBe(by.two.id);
    expect(by.orphan).toMatchObject({ parent: 'gone', parentId: null });
    expect(by.anew).toMatchObject({ parent: 'three', parentId: by.three.id, parentStep: null, notes });
    expect(by.one.group).not.toBeNull();
    expect(by.two.group).toBe(by.one.group);
    expect(by.three.group).not.toBe(by.one.group);
    // What was learnt before is no seed.
    expect(by.child.group).not.toBe(by.one.group);
    const { settings, runs } = (await get('/api/settings')).json<AllSettings>();
    const having = (text: string): string[] =>
      Object.entries(runs).flatMap(([id, has]) => (has.includes(settings.indexOf(text)) ? [id] : []));
    expect(having('learningRate=0.001')).toEqual([by.three.id]);
    expect(having('learningRate=0.0003')).toHaveLength(5);
    const known = (await get(`/api/runs/${by.one.id}/settings`)).json<SettingsAnswer>().settings;
    expect(known.learningRate.doc).toMatch(/step size/);
    expect(typeof known.learningRate.fallback).toBe('number');
  });

  test('settings make the group: not names and places, and nothing where there are none', () => {
    const base = { trainer: 'x', environment: 'E', seed: 1, beginning: null };
    const group = (settings: Record<string, unknown>, seed: number | null = 1) =>
      groupOf({ ...base, seed, settings });
    expect(group({ lr: 1, seed: 1, exp_name: 'a', 'args.output_dir': '/a' })).toBe(
      group({ lr: 1, seed: 2, exp_name: 'b', 'args.output_dir': '/b' }, 2),
    );
    expect(group({ lr: 1 })).not.toBe(group({ lr: 2 }));
    expect(group({ lr: 1, b: 2 })).toBe(group({ b: 2, lr: 1 }));
    expect(group({})).toBeNull();
    expect(group({ seed: 1 })).toBeNull();
    expect(group({ lr: 1 }, null)).toBeNull();
  });
});

describe('what a process said', () => {
  test('is told of a failed run, without controls and bounded', async () => {
    const root = scratch();
    const { writer, dir } = makeRun(root, 'failed', 2);
    writer.end('failed', 'NaN', 'Error: NaN\n    at \u001b[31mstep\u001b[0m (env.ts:3:1)');
    writeFileSync(join(dir, 'process.log'), `${'x'.repeat(99)}\n`.repeat(3000));
    const { get } = await start({ roots: [root] });
    const [{ id }] = await listed(get);
    const { parts } = (await get(`/api/runs/${id}/output`)).json<OutputAnswer>();
    expect(parts.map(({ cut }) => cut)).toEqual([false, true]);
    expect(parts[0].text).toBe('Error: NaN\n    at step (env.ts:3:1)\n');
    expect(parts[1].text.length).toBeLessThanOrEqual(65_536);
    expect(parts[1].text.split('\n')[0]).toHaveLength(99);
  });

  test('a link that leads out of the roots is not followed', async () => {
    const [root, elsewhere] = [scratch(), scratch()];
    const { writer, dir } = makeRun(root, 'linked', 2);
    writer.end('failed', 'NaN');
    mkdirSync(elsewhere, { recursive: true });
    writeFileSync(join(elsewhere, 'secret'), 'hidden');
    symlinkSync(join(elsewhere, 'secret'), join(dir, 'process.log'));
    const { get } = await start({ roots: [root] });
    const [{ id }] = await listed(get);
    expect((await get(`/api/runs/${id}/output`)).json<OutputAnswer>().parts).toEqual([]);
  });

  test('plain text: what a terminal would show in the end', () => {
    expect(
      plainText('\u001b]0;title\u0007a\u001b[1;31mb\u001b[0m\r\n10 %\r20 %\rdone\r\nx\u0000\u202ey\tz'),
    ).toBe('ab\ndone\nxy\tz');
  });
});
