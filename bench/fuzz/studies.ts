/** A study's files: the journal, of ours and of Optuna, `study.json`, and what people write to ask for one. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importanceOf } from '../../src/studies/importance.ts';
import { JournalWriter, readJournal } from '../../src/studies/journal.ts';
import { createStudy, openStudy, studyPaths } from '../../src/studies/store.ts';
import { readStudyFile, studyOf } from '../../src/studies/study-file.ts';
import { summaryOf } from '../../src/studies/summary.ts';
import { outcome, study } from '../../test/studies/support/studies.ts';
import { type FuzzedReader, insist } from './reader.ts';

const journal: FuzzedReader = {
  name: 'journal',
  open(directory) {
    mkdirSync(join(directory, 'sound'));
    const path = join(directory, 'sound', 'journal.log');
    const writer = new JournalWriter(path, study(), () => 1_700_000_000_000);
    writer.createTrial({ params: { learningRate: 1e-3, epochs: 7, hidden: [64, 64] }, seeds: [0, 1] });
    writer.createTrial({ params: { clipRange: 0.2, hidden: '[32]' }, seeds: [0], state: 'waiting' });
    writer.setOutcome(0, outcome({ klLargest: Number.POSITIVE_INFINITY }));
    writer.setRung(0, 1000, Number.NaN);
    writer.startTrial(1);
    writer.endTrial(0, { state: 'complete', value: 412.5, violations: ['seed 0 is sick'] });
    writer.close();
    const damaged = join(directory, 'journal.log');
    return {
      samples: [readFileSync(path)],
      read(bytes) {
        writeFileSync(damaged, bytes);
        const { trials, problems } = readJournal(damaged);
        insist(problems.length <= 101, () => `${problems.length} problems`);
        for (const { value, outcomes, seeds, rungs } of trials) {
          insist(value === null || !Number.isNaN(value), () => 'a value that is no number');
          insist(
            outcomes.every(one => Number.isSafeInteger(one.step)) && seeds.every(Number.isSafeInteger),
            () => 'a step or a seed that is not whole',
          );
          insist(
            rungs.every(rung => Number.isSafeInteger(rung.steps)),
            () => 'a rung that is not whole',
          );
        }
        summaryOf(study(), trials);
        importanceOf(study().space, trials);
        // Refused or gone on with, and then still a journal.
        const writer = new JournalWriter(damaged, study());
        writer.createTrial({ params: { epochs: 3 }, seeds: [0] });
        writer.close();
        const after = readJournal(damaged).trials;
        insist(after.at(-1)?.params.epochs === 3, () => 'the trial that was written is not the last');
        return 'resumed';
      },
    };
  },
};

const studyJson: FuzzedReader = {
  name: 'study',
  open(directory) {
    const { dir } = createStudy(study(), join(directory, 'sound'));
    const damaged = join(directory, 'x');
    return {
      samples: [readFileSync(studyPaths(dir).study)],
      read(bytes) {
        rmSync(damaged, { recursive: true, force: true });
        mkdirSync(damaged);
        writeFileSync(studyPaths(damaged).study, bytes);
        summaryOf(openStudy(damaged).study, []);
      },
    };
  },
};

const studyFile: FuzzedReader = {
  name: 'study-file',
  open: directory => ({
    samples: [
      Buffer.from(
        'env: cartpole\nconfig: { steps: 50000 }\nspace:\n  learningRate: { log: [1e-5, 1e-2] }\n  epochs: { range: [3, 20], step: 2 }\n  adaptiveRate: [true, false]\n  adaptiveRateTarget: { log: [1e-3, 0.1], when: { adaptiveRate: true } }\nseeds: 0..2\nhalving: true\n',
      ),
      Buffer.from(
        '{"task": "arithmetic", "method": "grid", "space": {"learningRate": [1e-4, 1e-3]}, "objective": {"metric": "loss/value", "over": "mean"}, "constraints": {"klMax": 0.05}}',
      ),
    ],
    read(bytes, sample) {
      const path = join(directory, sample === 0 ? 'x.yaml' : 'x.json');
      writeFileSync(path, bytes);
      const { trials, seeds } = studyOf(readStudyFile(path));
      insist(trials >= 1 && seeds.every(seed => seed < 1000), () => 'a study that cannot be');
    },
  }),
};

export const studyReaders: readonly FuzzedReader[] = [journal, studyJson, studyFile];
