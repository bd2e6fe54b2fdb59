/**
 * A text task of one's own: `abca>` is to be completed by the same letters in order, `aabc`. Its name takes the place of
 * chess's: `keel clone ./examples/own-task.ts`.
 */
import { clearGrade, defineTask, sumParts } from 'keel/tasks';

const sorted = (letters: string): string => [...letters].sort().join('');

export default defineTask<{ length: number }>({
  name: 'sort-letters',
  summary: 'Write letters in the order of the alphabet.',
  options: { length: { default: 6, doc: 'letters of a prompt', min: 1, max: 20, integer: true } },
  make: ({ length }) => ({
    name: 'sort-letters',
    characters: 'abcdef>',
    pieces: [], // no token of several characters
    rewardParts: ['form', 'places', 'malformed'],
    metricNames: ['exact'],
    stop: ['\n'],
    maxPromptTokens: length + 1,
    maxNewTokens: length + 1, // with the end
    prompt(rng) {
      const letters = Array.from({ length }, () => 'abcdef'[rng.integer(6)]).join('');
      return { text: `${letters}>`, data: letters };
    },
    grade(prompt, completion, out) {
      clearGrade(out);
      const right = sorted(prompt.data as string);
      out.parsed = new RegExp(`^[a-f]{${length}}$`).test(completion);
      const places = [...right].filter((letter, i) => completion[i] === letter).length;
      out.parts[0] = out.parsed ? 0.2 : 0;
      out.parts[1] = out.parsed ? places / length : 0;
      out.parts[2] = out.parsed ? 0 : -0.3; // mild: a group must not be all about its form
      out.metrics[0] = completion === right ? 1 : 0;
      sumParts(out);
    },
    demonstration: prompt => sorted(prompt.data as string),
  }),
});
