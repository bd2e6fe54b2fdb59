/** The thread in which the command line reads and judges logs. */
import { answerJobs } from '../base/job-thread.ts';
import { type ExamineOptions, examine, search } from './doctor.ts';
import type { Candidate } from './readers/candidate.ts';

/** What the thread is asked. */
export type ExamineJob =
  | {
      readonly type: 'search';
      readonly paths: readonly string[];
      readonly limit: number | undefined;
      readonly leaveOut: readonly string[];
    }
  | {
      readonly type: 'examine';
      readonly candidate: Candidate;
      readonly map: ExamineOptions['map'] | undefined;
      readonly trainer: string | undefined;
      readonly whole: boolean | undefined;
    };

answerJobs<ExamineJob>((job, say) => {
  switch (job.type) {
    case 'search': {
      const { paths, limit, leaveOut } = job;
      return search(paths, { ...(limit === undefined ? {} : { limit }), leaveOut, onOpen: say });
    }
    case 'examine': {
      const { candidate, map, trainer, whole } = job;
      return examine(candidate, {
        ...(map === undefined ? {} : { map }),
        ...(trainer === undefined ? {} : { trainer }),
        ...(whole === undefined ? {} : { whole }),
      });
    }
    default:
      return job satisfies never;
  }
});
