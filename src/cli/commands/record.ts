import type { Command } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import { toJson } from '../../base/json.ts';
import { number } from '../../base/numbers.ts';
import { replayPath } from '../../runs/replays.ts';
import { resolveRun } from '../../runs/store.ts';
import { checkpointHelp } from '../checkpoints.ts';
import { contextOf, referenceTo, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import { countOption, envFileOption, policyCheckpointOption, runArgument, runDirOption } from '../options.ts';
import { recordCheckpoint } from '../recording.ts';

interface RecordFlags {
  readonly episodes: number;
  readonly checkpoint?: WhichCheckpoint;
  readonly envFile?: string;
  readonly runDir: string;
  readonly json?: boolean;
}

/** Episodes of one policy: more would push the run's other replays out of sight. */
const mostEpisodes = 50;

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .addArgument(runArgument('<run>'))
    .addOption(countOption('-n, --episodes <n>', 'episodes to play, each from another start').default(1))
    .addOption(policyCheckpointOption())
    .addOption(envFileOption())
    .addOption(runDirOption())
    .option('--json', 'the result as JSON')
    .addHelpText(
      'after',
      `
Training records by itself, every ten seconds or so (not with record: false).
${checkpointHelp}

Examples:
  $ keel record last
  $ keel record arachne-20260115 --checkpoint best -n 5`,
    )
    .action(async (reference: string, flags: RecordFlags, command: Command) => {
      const { print, raw, paint } = contextOf(command);
      if (flags.episodes < 1 || flags.episodes > mostEpisodes)
        throw new UsageError(`--episodes ${flags.episodes} is not in 1..${mostEpisodes}`);
      const run = resolveRun(reference, [flags.runDir]);
      const replays: { name: string; file: string; return: number; seconds: number; end: string }[] = [];
      const { why } = await recordCheckpoint(run, {
        checkpoint: flags.checkpoint,
        envFile: flags.envFile,
        episodes: flags.episodes,
        onReplay(name, { episodeReturn, frames, frameSeconds, end }) {
          const seconds = (frames - 1) * frameSeconds;
          replays.push({ name, file: replayPath(run.dir, name), return: episodeReturn, seconds, end });
        },
      });
      if (flags.json) {
        raw(toJson({ run: run.id, replays }));
        return;
      }
      print(`${run.id}: ${why}`);
      for (const replay of replays)
        print(
          `  ${shownDir(replay.file)}  return ${paint(number(replay.return), 'bold')}, ${number(replay.seconds)} s, ${replay.end}`,
        );
      print(`  see it: keel play ${referenceTo(run)}`);
    });
}
