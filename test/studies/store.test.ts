import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isRunId } from '../../src/runs/layout.ts';
import {
  createStudy,
  findStudy,
  listStudies,
  openStudy,
  runIdOf,
  studyPaths,
} from '../../src/studies/store.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { newDirectory, study } from './support/studies.ts';

const root = temporaryRoot('store');

describe('a study on disk', () => {
  it('opens as it was made, by name and by directory', () => {
    const here = newDirectory(root);
    const made = createStudy(study(), here);
    expect(made.dir).toBe(join(here, 'tune'));
    expect(readdirSync(made.dir).sort()).toEqual(['runs', 'study.json']);
    expect(openStudy(made.dir).study).toEqual(study());
    expect(findStudy('tune', here)).toEqual(made);
    expect(findStudy(made.dir)).toEqual(made);
    expect(studyPaths(made.dir)).toEqual({
      study: join(made.dir, 'study.json'),
      journal: join(made.dir, 'journal.log'),
      runs: join(made.dir, 'runs'),
    });
  });

  it('is made once', () => {
    const here = newDirectory(root);
    createStudy(study(), here);
    expect(() => createStudy(study(), here)).toThrow(/tune is a study already: go on with it/);
    mkdirSync(join(here, 'other'));
    writeFileSync(join(here, 'other', 'thesis.tex'), '');
    expect(() => createStudy(study({ name: 'other' }), here)).toThrow(/has "thesis.tex" in it/);
    expect(readdirSync(join(here, 'other'))).toEqual(['thesis.tex']);
  });

  it('whose maker died is made again', () => {
    const here = newDirectory(root);
    mkdirSync(join(here, 'tune', 'runs'), { recursive: true });
    writeFileSync(join(here, 'tune', '.keel-tmp-study.json-x'), '{');
    expect(createStudy(study(), here).study).toEqual(study());
  });

  it.each(['../up', 'a/b', '', '.hidden', 'con'])('is not called %j', name => {
    expect(() => createStudy(study({ name }), newDirectory(root))).toThrow(
      /use letters, digits|missing|does not fit/,
    );
  });

  it.each<[string, (whole: Record<string, unknown>) => unknown, RegExp]>([
    ['of a newer Keel', whole => ({ ...whole, schema: 2 }), /newer Keel \(schema 2/],
    ['of another kind', whole => ({ ...whole, kind: 'keel-run' }), /kind is "keel-run"/],
    ['without seeds', whole => ({ ...whole, seeds: [] }), /seeds is \[\]/],
    [
      'with an axis that is none',
      whole => ({ ...whole, space: [{ key: 'a', domain: { kind: 'x' } }] }),
      /space.0.domain/,
    ],
    ['with too many trials', whole => ({ ...whole, trials: 1e9 }), /trials is 1000000000/],
    ['that is a list', () => [], /it is \[\]/],
  ])('%s is refused, and listed as broken', (_, damage, problem) => {
    const here = newDirectory(root);
    const { dir } = createStudy(study(), here);
    const { study: path } = studyPaths(dir);
    writeFileSync(path, JSON.stringify(damage(JSON.parse(readFileSync(path, 'utf8')))));
    expect(() => openStudy(dir)).toThrow(problem);
    expect(listStudies(here)).toMatchObject({ studies: [], broken: [{ dir }] });
  });

  it('that is half a file is damaged', () => {
    const { dir } = createStudy(study(), newDirectory(root));
    const { study: path } = studyPaths(dir);
    writeFileSync(path, readFileSync(path).subarray(0, 100));
    expect(() => openStudy(dir)).toThrow(/study.json is damaged/);
  });

  it('is listed, the newest first', () => {
    const here = newDirectory(root);
    createStudy(study({ name: 'old', createdAt: '2026-01-01T00:00:00Z' }), here);
    createStudy(study({ name: 'new', createdAt: '2026-02-01T00:00:00Z' }), here);
    mkdirSync(join(here, 'no-study'));
    expect(listStudies(here).studies.map(one => one.study.name)).toEqual(['new', 'old']);
    expect(listStudies(join(here, 'nowhere'))).toEqual({ studies: [], broken: [] });
    expect(() => findStudy('ol', here)).toThrow(/there is no study "ol" in .*: did you mean old\?/);
    expect(() => openStudy(join(here, 'no-study'))).toThrow(/is not a study: it has no study.json/);
  });
});

describe('the run of a trial and a seed', () => {
  it('is readable, and a run may be called so', () => {
    const one = study({ name: 'pole' });
    const mark = /^pole-[0-9a-f]{6}-/;
    const ids = [
      runIdOf(one, { number: 7, purpose: 'search' }, 2),
      runIdOf(one, { number: 12_345, purpose: 'search' }, 0),
      runIdOf(one, { number: 50, purpose: 'confirm-default' }, 1003),
      runIdOf(one, { number: 51, purpose: 'confirm-winner' }, 1003),
    ];
    expect(ids.every(id => mark.test(id))).toBe(true);
    expect(ids.map(id => id.replace(mark, ''))).toEqual([
      't0007-seed2',
      't12345-seed0',
      'default50-seed1003',
      'winner51-seed1003',
    ]);
    expect(ids.every(isRunId)).toBe(true);
  });

  it('is another in another study of the same name', () => {
    const trial = { number: 0, purpose: 'search' } as const;
    const other = { ...study({ name: 'pole' }), createdAt: '2026-01-02T00:00:00.000Z' };
    expect(runIdOf(other, trial, 0)).not.toBe(runIdOf(study({ name: 'pole' }), trial, 0));
    expect(isRunId(runIdOf({ ...other, name: 'p'.repeat(120) }, trial, 1e15))).toBe(true);
  });
});
