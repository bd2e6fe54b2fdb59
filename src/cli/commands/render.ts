import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import { grouped, number } from '../../base/numbers.ts';
import { fit } from '../../base/terminal.ts';
import { chooseReplay, listReplays, loadReplay, replayPath } from '../../runs/replays.ts';
import { resolveRun } from '../../runs/store.ts';
import { film, filmKindOf } from '../../view/film.ts';
import { secondsOf } from '../../view/motion.ts';
import { contextOf, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import { envFileOption, policyCheckpointOption, runDirOption } from '../options.ts';
import { recordCheckpoint } from '../recording.ts';

interface RenderFlags {
  readonly checkpoint?: WhichCheckpoint;
  readonly envFile?: string;
  readonly out?: string;
  readonly size: readonly [width: number, height: number];
  readonly fps: number;
  readonly speed: number;
  readonly at?: number;
  readonly dark?: boolean;
  readonly runDir: string;
}

const mostPixels = 4096 * 4096;

function sizeOf(text: string): [number, number] {
  const match = /^(\d{1,4})x(\d{1,4})$/i.exec(text);
  const [width, height] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  if (width < 16 || height < 16 || width * height > mostPixels)
    throw new InvalidArgumentError(`${text} is not a size: use 320x240, from 16x16 to 4096x4096.`);
  return [width, height];
}

const within =
  (low: number, high: number) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && value >= low && value <= high) return value;
    throw new InvalidArgumentError(`${text} is not a number in ${low}..${high}.`);
  };

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .argument('<run>', 'a run (its id, the beginning or end of it, its directory, or last) or a .replay file')
    .addOption(policyCheckpointOption())
    .option(
      '-o, --out <file>',
      'name.gif, name.png, name.mp4 (with ffmpeg) or directory/ (default: <run>.gif)',
    )
    .addOption(new Option('--size <WxH>', 'in pixels').argParser(sizeOf).default([480, 320], '480x320'))
    .addOption(new Option('--fps <n>', 'pictures a second').argParser(within(1, 60)).default(25))
    .addOption(new Option('--speed <x>', 'faster or slower than life').argParser(within(0.05, 20)).default(1))
    .addOption(
      new Option('--at <seconds>', 'which moment, for a .png (default: the middle)').argParser(
        within(0, 1e6),
      ),
    )
    .option('--dark', 'on a dark ground')
    .addOption(envFileOption())
    .addOption(runDirOption())
    .addHelpText(
      'after',
      `
Without --checkpoint it is the newest replay of the run; a run that has none, or
a --checkpoint that has none, is recorded first.

Examples:
  $ keel render last                          <run>.gif, here
  $ keel render last --checkpoint best -o walk.mp4 --size 1280x720 --fps 50
  $ keel render last -o frames/               every picture as a .png
  $ keel render runs/arachne-k3f9/replays/4096.replay -o start.png --at 0`,
    )
    .action(async (reference: string, flags: RenderFlags, command: Command) => {
      const context = contextOf(command);
      const { path, name } = await replayOf(reference, flags, text => context.note(text));
      const out = flags.out ?? `${name}.gif`;
      const kind = filmKindOf(out);
      if (flags.at !== undefined && kind !== 'picture')
        throw new UsageError('--at is for a single picture: name a .png, or leave it out');
      if (kind !== 'pictures' && !existsSync(dirname(resolve(out))))
        throw new UsageError(`--out ${out}: the directory ${dirname(out)} does not exist: make it first`);
      const replay = loadReplay(path);
      if (flags.at !== undefined && flags.at > secondsOf(replay))
        throw new UsageError(`--at ${flags.at}: the episode has ${number(secondsOf(replay))} s`);
      const [width, height] = flags.size;
      const startedAt = performance.now();
      let shownAt = 0;
      const pictures = await film(replay, out, {
        width,
        height,
        framesPerSecond: flags.fps,
        speed: flags.speed,
        dark: flags.dark === true,
        atSeconds: flags.at,
        onProgress(done, total) {
          if (!process.stderr.isTTY || (performance.now() - shownAt < 100 && done < total)) return;
          shownAt = performance.now();
          const line = fit(`picture ${done} of ${total}`, context.columns - 1);
          process.stderr.write(`\r\u001b[K${done < total ? line : ''}`);
        },
      });
      const seconds = (performance.now() - startedAt) / 1000;
      const size = kind === 'pictures' ? '' : `, ${grouped(Math.round(statSync(out).size / 1000))} kB`;
      context.print(
        `${shownDir(out)}: ${pictures === 1 ? '1 picture' : `${pictures} pictures`} of ${width}x${height}${size}, step ${grouped(replay.step)}, return ${number(replay.episodeReturn)}, in ${number(seconds)} s`,
      );
    });
}

/** The file to draw, recorded if it is not there yet, and what to call it. */
async function replayOf(
  reference: string,
  { checkpoint, envFile, runDir }: RenderFlags,
  note: (text: string) => void,
): Promise<{ path: string; name: string }> {
  if (/\.replay$/i.test(reference)) {
    if (checkpoint !== undefined)
      throw new UsageError('--checkpoint is for a run: a replay is of one already');
    return {
      path: reference,
      name: reference
        .split(/[\\/]/)
        .at(-1)!
        .replace(/\.replay$/i, ''),
    };
  }
  const run = resolveRun(reference, [runDir]);
  const all = listReplays(run.dir);
  const there = checkpoint === undefined ? all.length > 0 : all.some(({ step }) => step === checkpoint);
  if (there)
    return { path: replayPath(run.dir, chooseReplay(run.dir, checkpoint ?? 'last').name), name: run.id };
  const { names, why } = await recordCheckpoint(run, { checkpoint, envFile });
  note(`recorded an episode of ${why}`);
  return { path: replayPath(run.dir, names[0]), name: run.id };
}
