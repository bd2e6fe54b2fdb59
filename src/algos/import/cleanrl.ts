/** State dicts of CleanRL's `ppo.py` and `ppo_continuous_action.py` (`torch.save(agent.state_dict(), path)`). */
import { readBounded } from '../../base/files.ts';
import { openTorch, stateDict, type TorchTensor } from '../../pickle/torch.ts';
import { PickleError } from '../../pickle/values.ts';
import type { ImportedPolicy } from './imported.ts';
import { NamedTensors, networkSettings } from './network.ts';

const maxBytes = 2 ** 28;

/** Reads an agent. The file says nothing of spaces and activations: CleanRL's PPO uses tanh. */
export function readCleanRl(path: string): ImportedPolicy {
  const file = openTorch(readBounded(path, maxBytes), path);
  const named = new NamedTensors(stateDict(file, file.root, path), path);
  const isContinuous = named.has('actor_logstd');
  const network = {
    actor: named.layers(isContinuous ? 'actor_mean' : 'actor'),
    critic: named.layers('critic'),
    logStd: isContinuous ? rowOf(named.take('actor_logstd'), path) : undefined,
  };
  named.refuseRest("an agent of CleanRL's ppo.py or ppo_continuous_action.py");
  return {
    from: 'CleanRL PPO',
    source: path,
    network,
    spaces: undefined,
    settings: { ...networkSettings(network, path), activation: 'tanh' },
    isWhole: false,
    steps: 0,
    adam: undefined,
    notes: [
      'the file holds weights alone: how to train on is the preset of the environment',
      ...(isContinuous
        ? [
            'ppo_continuous_action.py normalises observations and does not save by what: give a pickle of its obs_rms (--normalise), or the policy sees others than it learnt with',
          ]
        : []),
    ],
  };
}

/** (1, n) */
function rowOf({ shape, data }: TorchTensor, path: string): Float32Array {
  if (shape.length > 2 || (shape.length === 2 && shape[0] !== 1))
    throw new PickleError(
      `actor_logstd of ${path} is (${shape.join(', ')}), one value for each action is needed`,
    );
  return data;
}
