/** Reverse-mode differentiation: `grad` adds the backward graph of a loss. */
import { loopDerivative } from './derivatives/loop.ts';
import { derivativeOf, zerosLike } from './derivatives/table.ts';
import { fail } from './errors.ts';
import { type InputAttrs, inputOp, type Node, type Operator, type Tensor } from './graph.ts';
import { add, expand } from './ops/elementwise.ts';
import { isLoop, operandsOf } from './ops/loop.ts';
import { showShape, sizeOf } from './shape.ts';

/**
 * The derivatives of a loss (or of the sum of several) by each tensor of `wrt`, in their shapes.
 *
 * A tensor that the loss does not depend on is an error, because a penalty that moves nothing is most often a mistake;
 * `{ unused: 'zero' }` gives zeros instead.
 */
export function grad(
  loss: Tensor | readonly Tensor[],
  wrt: readonly Tensor[],
  options: { unused?: 'error' | 'zero' } = {},
): Tensor[] {
  const losses = Array.isArray(loss) ? (loss as readonly Tensor[]) : [loss as Tensor];
  if (!Array.isArray(wrt)) fail('grad: wrt is not a list: give the tensors to derive by as [x]');
  if (losses.length === 0) fail('grad: no loss was given: give at least one');
  for (const t of losses) {
    if (t.dtype !== 'float32' || sizeOf(t.shape) !== 1) {
      fail(
        `grad: the loss is ${t.dtype} ${showShape(t.shape)}: one float32 value is needed; sum or average it first`,
      );
    }
  }
  for (const t of wrt) {
    if (t.dtype !== 'float32')
      fail(`grad: ${describe(t)} is ${t.dtype}: derivatives are by float32 tensors only`);
  }
  const seeds = losses.map(of => ({ of, grad: expand(of.node.graph.constant(1), of.shape) }));
  return backpropagate(seeds, wrt, false).map((g, i) => {
    if (g) return g;
    if (options.unused === 'zero') return zerosLike(wrt[i]);
    return fail(
      `grad: the loss does not depend on ${describe(wrt[i])}: leave it out, or pass { unused: 'zero' }`,
    );
  });
}

/**
 * Carries derivatives from `seeds` back to `wrt`. With `asLeaves`, what `wrt` itself was computed from counts as
 * fixed, even where it is another tensor of `wrt`.
 */
function backpropagate(
  seeds: readonly { of: Tensor; grad: Tensor }[],
  wrt: readonly Tensor[],
  asLeaves: boolean,
): (Tensor | undefined)[] {
  const targets = new Set(wrt);
  const order = nodesBetween(
    seeds.map(seed => seed.of),
    targets,
    asLeaves,
  );
  const sums = new Map<Tensor, Tensor>();
  const accumulate = (of: Tensor, g: Tensor): void => {
    const sum = sums.get(of);
    sums.set(of, sum ? add(sum, g) : g);
  };
  for (const { of, grad: g } of seeds) accumulate(of, g);
  for (const node of order) {
    const grads = node.outputs.map(t => (asLeaves && targets.has(t) ? undefined : sums.get(t)));
    const first = grads.find(g => g !== undefined);
    if (!first) continue;
    const operands = operandsOf(node);
    const found = isLoop(node)
      ? loopDerivative(node, grads, (inner, leaves) => backpropagate(inner, leaves, true))
      : derivativeOf(node.op)?.(node, grads[0] ?? first, grads);
    found?.forEach((g, i) => {
      if (g && operands[i].dtype === 'float32') accumulate(operands[i], g);
    });
  }
  return wrt.map(t => sums.get(t));
}

/** The nodes on a path from `wrt` to the seeds, results before what they were computed from. */
function nodesBetween(seeds: readonly Tensor[], wrt: ReadonlySet<Tensor>, asLeaves: boolean): Node[] {
  const depends = new Map<Node, boolean>();
  // Without recursion: a language model's graph is deeper than the call stack.
  const stack: { node: Node; operands: readonly Tensor[]; next: number }[] = [];
  const push = (node: Node): void => {
    depends.set(node, false);
    stack.push({ node, operands: operandsOf(node), next: 0 });
  };
  for (const seed of seeds) {
    if (!depends.has(seed.node)) push(seed.node);
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const operand = top.operands[top.next++];
      if (operand) {
        const isTarget = wrt.has(operand);
        if (!depends.has(operand.node) && !(isTarget && asLeaves)) push(operand.node);
      } else {
        stack.pop();
        const reaches = (t: Tensor): boolean => wrt.has(t) || (depends.get(t.node) ?? false);
        if (derivativeOf(top.node.op) || isLoop(top.node)) depends.set(top.node, top.operands.some(reaches));
      }
    }
  }
  const order = [...depends].filter(([, reaches]) => reaches).map(([node]) => node);
  // An operand is always made before what uses it.
  return order.sort((a, b) => b.outputs[0].id - a.outputs[0].id);
}

function describe(t: Tensor): string {
  const name =
    t.node.op === (inputOp as Operator)
      ? `input '${(t.node.attrs as InputAttrs).name}'`
      : `a ${t.node.op.name}`;
  return `${name} ${showShape(t.shape)}`;
}
