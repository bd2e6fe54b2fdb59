/**
 * Files for batch schedulers: a Slurm array, or an indexed Kubernetes job, with a task for every run of a study. Each task
 * is `keel sweep task <study> --index <n>`: it does its run in the study's directory, which all machines share, and can be
 * begun any number of times. What they did is taken into the journal by `keel sweep <study>`, which trains what is missing.
 */
import { shellWord } from '../base/typed.ts';
import type { Study } from '../studies/schema.ts';

export const schedulers = ['slurm', 'k8s'] as const;
export type Scheduler = (typeof schedulers)[number];

export interface EmitOptions {
  readonly study: Pick<Study, 'name'>;
  /** Where the study is, for every machine that does a task. */
  readonly dir: string;
  /** How many runs. */
  readonly runs: number;
  /** At most so many at once. */
  readonly atOnce: number;
  /** What starts Keel: `['npx', 'keel']`. */
  readonly program: readonly string[];
  /** Kubernetes: the image that has Keel in it. */
  readonly image: string;
  /** Kubernetes: the volume claim that holds the study's directory. */
  readonly claim: string;
}

/** How often a task is begun again before it is left to whoever looks. */
const RETRIES = 3;

/** The text of the file, and its name. */
export function emit(
  scheduler: Scheduler,
  options: EmitOptions,
): { name: string; text: string; start: string } {
  switch (scheduler) {
    case 'slurm':
      return { name: 'slurm.sh', text: slurm(options), start: 'sbatch' };
    case 'k8s':
      return {
        name: 'k8s.json',
        text: `${JSON.stringify(kubernetes(options), undefined, 2)}\n`,
        start: 'kubectl apply -f',
      };
    default:
      return scheduler satisfies never;
  }
}

function slurm({ study, dir, runs, atOnce, program }: EmitOptions): string {
  const command = [...program, 'sweep', 'task', dir, '--index'].map(shellWord).join(' ');
  return `#!/usr/bin/env bash
# The runs of the study ${study.name}, a task each. \`sbatch\` this file where ${shellWord(dir)} can be reached
# from all nodes; afterwards \`${program.join(' ')} sweep ${shellWord(dir)}\` takes the results into the journal.
#SBATCH --job-name=keel-${study.name}
#SBATCH --array=0-${runs - 1}%${atOnce}
#SBATCH --cpus-per-task=1
#SBATCH --requeue
# A minute before its time is up a task saves and ends; it goes on from there when it is started again.
#SBATCH --signal=B:TERM@60
#SBATCH --output=${sbatchPath(dir)}/slurm-%a.log"
#SBATCH --open-mode=append
set -u
${command} "$SLURM_ARRAY_TASK_ID" &
task=$!
trap 'kill -TERM "$task" 2>/dev/null' TERM
# A signal ends the first wait, not the task.
wait "$task"; code=$?
while kill -0 "$task" 2>/dev/null; do wait "$task"; code=$?; done
# Ended by a signal (its own machine's, or the time limit): again, from its last checkpoint.
if [ "$code" -gt 128 ] && [ "\${SLURM_RESTART_COUNT:-0}" -lt ${RETRIES} ]; then
  exec scontrol requeue "\${SLURM_ARRAY_JOB_ID}_\${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
`;
}

/** A path in a directive, up to its closing quote: a % in it is one, not what Slurm fills in. */
const sbatchPath = (path: string): string => `"${path.replaceAll('%', '%%').replaceAll(/["\\]/g, '\\$&')}`;

function kubernetes({ study, dir, runs, atOnce, program, image, claim }: EmitOptions): unknown {
  // Names there have lower-case letters, digits and hyphens.
  const name = `keel-${study.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
    .slice(0, 60)
    .replace(/-+$/, '');
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, labels: { app: 'keel' } },
    spec: {
      completionMode: 'Indexed',
      completions: runs,
      parallelism: Math.min(atOnce, runs),
      backoffLimitPerIndex: RETRIES,
      maxFailedIndexes: runs,
      template: {
        metadata: { labels: { app: 'keel' } },
        spec: {
          restartPolicy: 'Never',
          // A task that is told to end saves first.
          terminationGracePeriodSeconds: 60,
          containers: [
            {
              name: 'run',
              image,
              command: ['/bin/sh', '-c'],
              args: [
                `exec ${[...program, 'sweep', 'task', dir, '--index'].map(shellWord).join(' ')} "$JOB_COMPLETION_INDEX"`,
              ],
              resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '2Gi' } },
              volumeMounts: [{ name: 'study', mountPath: dir }],
            },
          ],
          volumes: [{ name: 'study', persistentVolumeClaim: { claimName: claim } }],
        },
      },
    },
  };
}
