import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { RunError } from '../../base/errors.ts';
import { readBounded } from '../../base/files.ts';
import { jsonOf } from '../../base/json.ts';
import { typed } from '../../base/typed.ts';
import { listCheckpoints, loadCheckpoint } from '../checkpoint.ts';
import { checkpointDir, runPaths } from '../layout.ts';
import { referenceTo } from '../reference.ts';
import type { Evidence, Tell } from './evidence.ts';

const policyFile = 'policy.safetensors';
const mostPolicyBytes = 2 ** 31 - 1;
/** What a policy is held near, and what judges it, are saved beside it and are not deployed. */
const notDeployed = /^(reference|critic)\./;

/** Beside tensors it may have `__metadata__`, which has no offsets. */
const headerSchema = z.record(
  z.string(),
  z.looseObject({ data_offsets: z.optional(z.tuple([z.number(), z.number()])) }),
);

/** `policy.onnx` is there once a policy was saved, and holds the weights of its last checkpoint, bit by bit. */
export function verifyPolicy({ run, isWhole }: Evidence, tell: Tell): void {
  const { onnx } = runPaths(run.dir);
  // Killed between a checkpoint and what follows it, it is that of the one before.
  const steps = listCheckpoints(run.dir)
    .map(({ step }) => step)
    .slice(isWhole ? -1 : -2)
    .reverse();
  const policies = steps.flatMap(step => weightsAt(run.dir, step, tell));
  if (policies.length === 0) return;
  if (!existsSync(onnx)) {
    if (isWhole || policies.length > 1)
      tell(onnx, undefined, 'it is missing, expected the policy of the last checkpoint');
    return;
  }
  const deployed = readBounded(onnx, mostPolicyBytes);
  const absent = policies.map(({ tensors }) => tensors.find(({ bytes }) => !deployed.includes(bytes))?.name);
  if (absent.includes(undefined)) return;
  tell(
    onnx,
    undefined,
    `it does not hold ${absent[0]} of checkpoint ${policies[0].step}, expected the weights of the last checkpoint: ${typed('export', referenceTo(run.dir))} makes it again`,
  );
}

interface Tensor {
  readonly name: string;
  readonly bytes: Buffer;
}

/** The weights of a checkpoint's policy; none where it has none, or is damaged, which the check of checkpoints tells. */
function weightsAt(runDir: string, step: number, tell: Tell): { step: number; tensors: Tensor[] }[] {
  let bytes: Uint8Array | undefined;
  try {
    bytes = loadCheckpoint(runDir, step)?.files.get(policyFile);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
  }
  if (bytes === undefined) return [];
  const tensors = tensorsOf(Buffer.from(bytes));
  if (tensors !== undefined) return [{ step, tensors }];
  tell(join(checkpointDir(runDir, step), policyFile), undefined, 'it is no safetensors file, expected one');
  return [];
}

/** The tensors of a safetensors file: the length of a header in JSON, the header, the data. */
function tensorsOf(file: Buffer): Tensor[] | undefined {
  try {
    const start = 8 + Number(file.readBigUInt64LE(0));
    const header = headerSchema.parse(jsonOf(file.subarray(8, start).toString('utf8')));
    return Object.entries(header).flatMap(([name, { data_offsets: at }]) =>
      at === undefined || notDeployed.test(name)
        ? []
        : [{ name, bytes: file.subarray(start + at[0], start + at[1]) }],
    );
  } catch {
    return undefined;
  }
}
