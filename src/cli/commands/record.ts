import type { Command } from 'commander';
import { number } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import { referenceTo } from '../../runs/reference.ts';
import { replayPath } from '../../runs/replays.ts';
import { secondsOf } from '../../view/motion.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type PolicyFlags, policyArgument, policyOptions, wholeNumber } from '../options.ts';
import { checkpointHelp, recordCheckpoint, runMeant } from '../policies.ts';

interface RecordFlags extends PolicyFlags {
  readonly episodes: number;
}

/** Episodes of one policy: more would push the run's other replays out of sight. */
const mostEpisodes = 50;

export function define(command: Command): void {
  command
    .addArgument(policyArgument())
    .option('-n, --episodes <n>', 'episodes to play, each from another start', wholeNumber, 1);
  policyOptions(command).option('--json', 'the result as JSON');
}

export const help = `Training records by itself, every ten seconds or so (not with record: false).
${checkpointHelp}`;

export const examples: Examples = [['record last'], ['record arachne-20260115 --checkpoint best -n 5']];

export async function run(
  { print, raw, json, paint }: Context,
  reference: string,
  flags: RecordFlags,
): Promise<void> {
  const { episodes } = flags;
  if (episodes < 1 || episodes > mostEpisodes)
    throw new UsageError(`--episodes ${episodes} is not in 1..${mostEpisodes}`);
  const { run, envFile } = await runMeant(reference, flags);
  const replays: { name: string; file: string; return: number; seconds: number; end: string }[] = [];
  const { why } = await recordCheckpoint(
    run,
    { ...flags, envFile },
    {
      episodes,
      onReplay(name, replay) {
        const { episodeReturn, end } = replay;
        const [file, seconds] = [replayPath(run.dir, name), secondsOf(replay)];
        replays.push({ name, file, return: episodeReturn, seconds, end });
      },
    },
  );
  if (flags.json) return json({ run: run.id, replays });
  print(`${run.id}: ${why}`);
  for (const { file, return: worth, seconds, end } of replays)
    print(`  ${shownDir(file)}  return ${paint(number(worth), 'bold')}, ${number(seconds)} s, ${end}`);
  raw(`  ${paint('see it', 'dim')}  ${typed('play', referenceTo(run.dir))}`);
}
