/** How the server reads a study: its journal as it grows, and what mattered of its settings. */
import { importanceOf, trialsNeeded } from '../studies/importance.ts';
import { JournalReader } from '../studies/journal.ts';
import { openStudy, runIdOf, studyPaths } from '../studies/store.ts';
import type { StudyReading } from './study-source.ts';

export const studyReading: StudyReading = {
  open(dir) {
    const { study } = openStudy(dir);
    const reader = new JournalReader(studyPaths(dir).journal);
    return { read: () => ({ study, trials: reader.read().trials }) };
  },
  importance({ space }, trials) {
    const found = importanceOf(space, trials);
    return {
      axes: [...(found?.axes ?? [])].sort((a, b) => b.share - a.share),
      trials: trials.filter(({ state, purpose }) => state === 'complete' && purpose === 'search').length,
      needed: trialsNeeded(space),
    };
  },
  runIdOf,
};
