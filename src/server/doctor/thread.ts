/** The doctor's thread: one job after the other, so that long logs never hold up a request. */
import { answerJobs } from '../../base/job-thread.ts';
import type { Job } from './jobs.ts';
import { work } from './work.ts';

answerJobs<Job>(work);
