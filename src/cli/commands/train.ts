import type { Command } from 'commander';
import { loadPreset } from '../../algos/settings-file.ts';
import { warmStartSettings } from '../../algos/warm-start.ts';
import { resolveRun } from '../../runs/index.ts';
import { contextOf } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { settingOptions } from '../options.ts';
import { absoluteEnv, checkEach, checkedConfig, gatherSettings, located } from '../settings.ts';
import { grouped } from '../terminal.ts';
import { beginText, refuseTextFlags, type TextFlags, textOptions } from '../text.ts';

type TrainFlags = TextFlags;

export function addTrain(program: Command): void {
  textOptions(trainDashOptions(settingOptions(program.command('train'))))
    .description('train a policy in a new run; without arguments, in a terminal, it asks')
    .argument('[env]', 'an id (cartpole, Pendulum-v1), a text task (chess) or a file (./my-env.ts)')
    .option('--run-dir <root>', 'directory of runs', 'runs')
    .option('--json', 'rows and events as JSON lines on stdout, nothing else there')
    .addHelpText(
      'after',
      `
Settings win in this order: flags, --set, the file (-c), the environment's
preset, defaults. "keel config [env]" prints them all with what each does.

Examples:
  $ keel train cartpole
  $ keel train pendulum --steps 200k --seed 1 --set hidden=[64,64]
  $ keel train ./my-env.ts -c config.yaml
  $ keel train chess --from last --set groupSize=16
  $ keel train cluster --from last --set klRefCoefInitial=0.3
  $ keel train cartpole --json | jq 'select(.kind == "row")["kl/step"]'`,
    )
    .action(async (env: string | undefined, flags: TrainFlags, command: Command) => {
      const context = contextOf(command);
      let wanted = gatherSettings(env, flags);
      let page: TrainDashFlags = flags;
      if (wanted.env === undefined) {
        if (!process.stdin.isTTY || !process.stdout.isTTY || flags.json)
          throw new UsageError(
            'train needs an environment, such as keel train cartpole: keel envs lists them',
          );
        // What is wrong whatever the answers are is said before the first question.
        checkEach(wanted);
        const { askWhatToTrain } = await import('../ask.ts');
        const answer = await askWhatToTrain({
          root: flags.runDir,
          steps: flags.steps,
          page: flags.dash !== undefined || flags.open !== undefined,
        });
        page = { ...flags, ...(answer.open === undefined ? {} : { open: answer.open }) };
        if (answer.kind === 'continue') {
          const { resumeRun } = await import('./resume.ts');
          const { dash, open, port } = page;
          const steps = answer.steps ?? flags.steps;
          return resumeRun(context, answer.dir, { steps, dash, open, port }, wanted);
        }
        wanted = { ...wanted, env: absoluteEnv(answer.env) };
      }
      const { meansTask } = await import('../../tasks/index.ts');
      if (await meansTask(wanted.env!)) return beginText(context, wanted, { ...flags, ...page }, 'grpo');
      refuseTextFlags(flags, wanted.env!);
      const { resolveEnv } = await import('../../envs/index.ts');
      const task = wanted.env!;
      const { id } = await resolveEnv(task);
      const preset = flags.preset === false ? {} : loadPreset(id);
      const from = flags.from === undefined ? undefined : weightsAt(flags.from, flags.runDir);
      // Before anything is made: what is wrong is said with where it was set.
      checkedConfig(from === undefined ? preset : { ...warmStartSettings, ...preset }, wanted);
      const [{ train }, { overshoot, runTraining }] = await Promise.all([
        import('../../algos/train.ts'),
        import('../run-training.ts'),
      ]);
      const { shownDir } = await import('../context.ts');
      await runTraining(
        context,
        {
          json: flags.json === true,
          dash: page,
          remark: overshoot,
          title: ({ dir, totalSteps, config }) =>
            `${context.paint(id, 'bold')}, ${grouped(totalSteps)} steps, seed ${config.seed}: ${shownDir(dir)}`,
        },
        hooks =>
          train({
            env: task,
            envOptions: wanted.envOptions,
            config: wanted.settings,
            preset,
            root: flags.runDir,
            ...(from === undefined ? {} : { from }),
            ...hooks,
          }),
      ).catch(error => {
        throw located(error, wanted.sources);
      });
    });
}

/** A file as it is named, or a run's directory. */
function weightsAt(reference: string, root: string): string {
  return reference.endsWith('.safetensors') ? reference : resolveRun(reference, [root]).dir;
}
