import { afterAll, describe, expect, it } from 'vitest';
import { JobError, jobThread } from '../../src/base/job-thread.ts';
import { threadExaminer } from '../../src/doctor/thread-examiner.ts';
import { compiledUrl } from '../support/compiled.ts';

/** A thread that does what its jobs say. */
const double = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { answerJobs } from ${JSON.stringify(compiledUrl('base/job-thread'))};
    import { KeelError } from ${JSON.stringify(compiledUrl('base/errors'))};
    let jobs = 0;
    answerJobs(async (job, say) => {
      jobs++;
      // A search of the doctor hangs at the first file that it is not told to leave out.
      if (job.type === 'search') {
        const hangs = ['a', 'b'].find(path => !job.leaveOut.includes(path));
        if (hangs === undefined) return { candidates: [], failures: [], notes: job.paths };
        say('c');
        say(hangs);
        for (;;);
      }
      if (job.type === 'examine') for (;;);
      if (job.at !== undefined) say(job.at);
      switch (job.do) {
        case 'count': return jobs;
        case 'hang': for (;;);
        case 'wait': return new Promise(() => {});
        case 'eat': { const kept = []; for (;;) kept.push(new Array(10_000).fill(jobs++)); }
        case 'die': process.exit(1);
        case 'refuse': throw new KeelError('no such thing');
        case 'fail': throw new Error('oh');
      }
    });
  `)}`,
);
/** More than anything takes but what hangs. */
const long = { limitMs: 600_000 };

describe('a thread for jobs', () => {
  const thread = jobThread(double, 'double', 48);
  afterAll(() => thread.close());

  it('does one after the other, and goes on after each that is ended', async () => {
    expect(await thread.ask({ do: 'count' }, long)).toBe(1);
    const asked = [
      thread.ask({ do: 'hang', at: 'here' }, { limitMs: 500 }),
      thread.ask({ do: 'count' }, long),
      thread.ask({ do: 'wait' }, { limitMs: 200 }),
      thread.ask({ do: 'eat' }, long),
      thread.ask({ do: 'die' }, long),
      thread.ask({ do: 'refuse' }, long),
      thread.ask({ do: 'fail' }, long),
      thread.ask({ do: 'count' }, long),
    ];
    const said = (await Promise.allSettled(asked)).map(outcome =>
      outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as JobError).message,
    );
    expect(said).toEqual([
      'took longer than 0.5 s: left out',
      1,
      'took longer than 0.2 s: left out',
      'needed more than 48 MB of memory: left out',
      'its thread ended',
      'no such thing',
      'oh (this is a fault in Keel)',
      3,
    ]);
    const error = await asked[0].catch((reason: JobError) => reason);
    expect(error).toMatchObject({ at: 'here', isStopped: true });
    expect(error).toBeInstanceOf(JobError);
  });

  it('is called off with a signal, before its turn and in it', async () => {
    const stop = new AbortController();
    const hanging = thread.ask(
      { do: 'hang', at: 'x' },
      { ...long, onAt: () => stop.abort(), signal: stop.signal },
    );
    const next = thread.ask({ do: 'count' }, { ...long, signal: stop.signal });
    await expect(hanging).rejects.toMatchObject({ isStopped: false });
    await expect(next).rejects.toThrow(JobError);
    expect(await thread.ask({ do: 'count' }, long)).toBe(1);
  });

  it('is closed whatever it does', async () => {
    const other = jobThread(double, 'other');
    let begun = (): void => {};
    const busy = new Promise<void>(resolve => {
      begun = resolve;
    });
    const hanging = other.ask({ do: 'hang', at: 'x' }, { ...long, onAt: begun });
    const next = other.ask({ do: 'count' }, long);
    const failed = Promise.allSettled([hanging, next]);
    await busy;
    await other.close();
    expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(other.ask({ do: 'count' }, long)).rejects.toThrow(JobError);
  });
});

describe('an examiner in a thread', () => {
  const thread = jobThread(double, 'double');
  afterAll(() => thread.close());

  it('leaves out the files at which a search hangs, by name, and searches on', async () => {
    const { failures, notes } = await threadExaminer(500, thread).search(['a', 'd']);
    // A path that was given and cannot be read is worth another exit code than one that was found.
    expect(failures).toEqual([
      {
        path: 'a',
        error: 'a: took longer than 0.5 s: left out',
        why: 'took longer than 0.5 s: left out',
        given: true,
      },
      { path: 'b', error: 'b: took longer than 0.5 s: left out', why: 'took longer than 0.5 s: left out' },
    ]);
    expect(notes).toEqual(['d']);
  });

  it('says of a log that it took too long', async () => {
    const candidate = {
      path: 'x',
      format: 'csv',
      files: [],
      source: { kind: 'csv', file: 'x' },
      directory: '.',
      notes: [],
    } as const;
    const outcome = await threadExaminer(50, thread).examine(candidate);
    expect(outcome).toMatchObject({ path: 'x', error: 'x: took longer than 0.05 s: left out' });
  });
});
