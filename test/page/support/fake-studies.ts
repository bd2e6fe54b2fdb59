/** Studies in memory in place of files, for the page: a test changes one and the page is told, as it would be of a journal. */
import type { StudyImportance } from '../../../src/server/api.ts';
import type { StudySource } from '../../../src/server/studies.ts';
import type { Study, Trial } from '../../../src/studies/schema.ts';
import type { WorkersView } from '../../../src/studies/workers-view.ts';
import { fakeStudy, fakeTrials, fakeWorkers } from '../../studies/support/fake-study.ts';

export interface FakeStudyState {
  study: Study;
  trials: readonly Trial[];
  workers: WorkersView | undefined;
  importance: StudyImportance;
  updatedAt: number;
  workersAt: number | null;
}

export type FakeStudies = Map<string, FakeStudyState>;

/** A study of 40 trials, two of which run, on three workers. */
export function galleryStudy(now = Date.now()): FakeStudyState {
  return {
    study: { ...fakeStudy, createdAt: new Date(now - 3_600_000).toISOString() },
    trials: fakeTrials(40),
    workers: fakeWorkers(now),
    importance: {
      axes: [
        { key: 'learningRate', share: 0.71 },
        { key: 'gamma', share: 0.17 },
        { key: 'klTarget', share: 0.08 },
        { key: 'epochs', share: 0.04 },
        { key: 'klControl', share: 0 },
      ],
      trials: 30,
      needed: 10,
    },
    // In the future, so that it is still at work when a slow machine comes to look at it.
    updatedAt: now + 3_600_000,
    workersAt: now + 3_600_000,
  };
}

/** What has changed is what is another object. */
export function studySource(kept: FakeStudies): StudySource {
  const versions = new Map<string, { readonly trials: readonly Trial[]; readonly version: number }>();
  let version = 0;
  return {
    list: () =>
      [...kept].map(([id, { study, trials, updatedAt, workersAt }]) => {
        let known = versions.get(id);
        if (known?.trials !== trials) {
          known = { trials, version: ++version };
          versions.set(id, known);
        }
        return { id, name: study.name, root: 'studies', version: `${known.version}`, updatedAt, workersAt };
      }),
    open: id => kept.get(id),
    workers: id => kept.get(id)?.workers,
    importance: study =>
      [...kept.values()].find(state => state.study === study)?.importance ?? {
        axes: [],
        trials: 0,
        needed: 10,
      },
    // The runs of the first trials are there under their names.
    runId: (_, run) => run,
    runName: (_, { number }, seed) => `t${String(number).padStart(4, '0')}-s${seed}`,
  };
}
