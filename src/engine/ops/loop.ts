/**
 * `loop`: a body run up to N times, in one program run.
 *
 * The body sees the iteration's number and the carried values, may use any tensor of the graphs around it, and returns
 * the next carried values, values to stack over iterations (scans), and a condition to go on. A loop that ends early
 * keeps the carried values of its last iteration; the rows of a scan that no iteration wrote are 0.
 */
import { fail } from '../errors.ts';
import { Graph, type Node, type Operator, sameType, type Tensor, type TensorType } from '../graph.ts';
import { showShape } from '../shape.ts';
import { asScaled, expand, mul } from './elementwise.ts';

/** Attributes of a loop node. Its inputs are the trip count, if that is a tensor, and the initial carried values. */
export interface LoopAttrs {
  readonly body: Graph;
  /** Iterations at most; scans have this many rows. */
  readonly maxTrips: number;
  readonly tripsAsInput: boolean;
  readonly iteration: Tensor;
  readonly carriedIn: readonly Tensor[];
  readonly carriedOut: readonly Tensor[];
  /** Grows when a derivative needs values of every iteration; see {@link addScans}. */
  readonly scans: Tensor[];
  /** A bool scalar of the body: false ends the loop after this iteration. */
  readonly goOn: Tensor | undefined;
}

/** Outputs: carried values, the number of iterations that ran, scans. */
export const loopOp: Operator<LoopAttrs> = {
  name: 'loop',
  infer: () => fail('loop: made by loop() only'),
};

export function isLoop(node: Node): node is Node<LoopAttrs> {
  return node.op === (loopOp as Operator);
}

type Tensors = Record<string, Tensor>;

/** What a loop repeats, how often, and what it carries along. */
export interface LoopOptions<C extends Tensors, S extends Tensors> {
  /** How many iterations; as a tensor (an int64 scalar) it needs the most there can be, for the scans' shape. */
  trips: number | { count: Tensor; atMost: number };
  /** Initial carried values by name. */
  carry: C;
  body(state: { iteration: Tensor; carry: C }): {
    carry: C;
    scan?: S;
    /** A bool scalar; when it is false, this iteration was the last. */
    goOn?: Tensor;
  };
}

/** What a loop leaves. */
export interface LoopResult<C extends Tensors, S extends Tensors> {
  /** Carried values after the last iteration. */
  carry: C;
  /** (trips, …) each. */
  scan: S;
  /** How many iterations ran, as an int64 scalar. */
  iterations: Tensor;
}

/** Bodies under construction, innermost last: a loop made inside of a body belongs to it whatever it carries. */
const building: Graph[] = [];

/** Runs a body up to `trips` times. */
export function loop<C extends Tensors, S extends Tensors = Record<string, never>>(
  options: LoopOptions<C, S>,
): LoopResult<C, S> {
  const names = Object.keys(options.carry);
  if (names.length === 0) fail('loop: nothing is carried: carry at least one value');
  const carried = names.map(name => options.carry[name]);
  let scanNames: string[] = [];
  // A constant factor on what is stacked is applied once, to the stack.
  let factors: number[] = [];
  const { trips } = options;
  const { node } = addLoop(
    parentOf(carried),
    typeof trips === 'number' ? { atMost: trips } : trips,
    carried,
    (iteration, values) => {
      const carry = Object.fromEntries(names.map((name, i) => [name, values[i]])) as C;
      const result = options.body({ iteration, carry });
      if (!result?.carry) fail('loop: the body returns no carry: return { carry: … } with the next values');
      scanNames = Object.keys(result.scan ?? {});
      const scans = scanNames.map(
        name => asScaled(result.scan![name]) ?? { tensor: result.scan![name], factor: 1 },
      );
      factors = scans.map(({ factor }) => factor);
      for (const name of Object.keys(result.carry)) {
        if (!names.includes(name))
          fail(`loop: the body returns '${name}', which is not carried: start it in carry`);
      }
      return {
        carried: names.map(
          name => result.carry[name] ?? fail(`loop: the body does not return '${name}', which is carried`),
        ),
        scans: scans.map(({ tensor }) => tensor),
        goOn: result.goOn,
      };
    },
    names,
  );
  const { outputs } = node;
  return {
    carry: Object.fromEntries(names.map((name, i) => [name, outputs[i]])) as C,
    iterations: outputs[names.length],
    scan: Object.fromEntries(
      scanNames.map((name, i) => {
        const stacked = outputs[names.length + 1 + i];
        return [name, factors[i] === 1 ? stacked : mul(stacked, factors[i])];
      }),
    ) as S,
  };
}

/** The graph that a loop over these values belongs to: the body under construction, if it sees them, or their own. */
function parentOf(carried: readonly Tensor[]): Graph {
  const body = building.at(-1);
  return body && carried.every(t => body.sees(t.node.graph)) ? body : innermost(carried);
}

/** The innermost of the graphs that tensors belong to. */
export function innermost(members: readonly (Tensor | Graph)[]): Graph {
  const graphs = members.map(member => (member instanceof Graph ? member : member.node.graph));
  return graphs.reduce((inner, graph) => (graph.depth > inner.depth ? graph : inner));
}

/** @internal The loop node behind {@link loop}, by position instead of by name. */
export function addLoop(
  parent: Graph,
  trips: { count?: Tensor; atMost: number },
  initial: readonly Tensor[],
  makeBody: (
    iteration: Tensor,
    carried: readonly Tensor[],
  ) => { carried: readonly Tensor[]; scans: readonly Tensor[]; goOn?: Tensor | undefined },
  names: readonly string[] = initial.map((_, i) => String(i)),
): { node: Node<LoopAttrs> } {
  const { count, atMost } = trips;
  if (!Number.isInteger(atMost) || atMost < 1)
    fail(`loop: trips is ${atMost}: a whole number of at least 1 is needed`);
  if (count && (count.dtype !== 'int64' || count.shape.length !== 0)) {
    fail(`loop: the trip count is ${count.dtype} ${showShape(count.shape)}: an int64 scalar is needed`);
  }
  for (const t of count ? [count, ...initial] : initial) {
    if (!parent.sees(t.node.graph)) {
      fail('loop: carried values and trip count belong to different graphs: build both in one Graph');
    }
  }
  if (parent.closed) {
    fail('loop: the loop body is finished: use what the loop returns instead of its inner tensors');
  }
  const body = new Graph(parent);
  const iteration = body.input('iteration', [], 'int64', { required: false });
  const carriedIn = initial.map((t, i) =>
    body.input(`carry ${names[i]}`, t.shape, t.dtype, { required: false }),
  );
  building.push(body);
  let result: ReturnType<typeof makeBody>;
  try {
    result = makeBody(iteration, carriedIn);
  } finally {
    building.pop();
  }
  const { goOn } = result;
  const scans = [...result.scans];
  const carriedOut = result.carried.map((t, i) => {
    // A value that broadcasts may be smaller than what it replaces: the carried shape is the one that was declared.
    const full = t.dtype === initial[i].dtype && t.shape.length === 0 ? expand(t, initial[i].shape) : t;
    if (!sameType(full, initial[i])) {
      fail(
        `loop: '${names[i]}' starts as ${initial[i].dtype} ${showShape(initial[i].shape)} but the body returns ${t.dtype} ${showShape(t.shape)}: they must be the same`,
      );
    }
    return full;
  });
  if (goOn && (goOn.dtype !== 'bool' || goOn.shape.length !== 0)) {
    fail(`loop: goOn is ${goOn.dtype} ${showShape(goOn.shape)}: a bool scalar is needed; reduce it first`);
  }
  for (const t of [...carriedOut, ...scans, ...(goOn ? [goOn] : [])]) {
    if (!body.sees(t.node.graph))
      fail('loop: the body returns a tensor of another graph: return what it computes itself');
  }
  body.closed = true;
  const attrs: LoopAttrs = {
    body,
    maxTrips: atMost,
    tripsAsInput: count !== undefined,
    iteration,
    carriedIn,
    carriedOut,
    scans,
    goOn,
  };
  const types: TensorType[] = [
    ...carriedOut,
    { shape: [], dtype: 'int64' },
    ...scans.map(t => ({ shape: [atMost, ...t.shape], dtype: t.dtype })),
  ];
  return { node: parent.addUnique(loopOp, [...(count ? [count] : []), ...initial], attrs, types) };
}

/** @internal Stacks further values of a finished body over its iterations: new outputs, the old ones stay. */
export function addScans(node: Node<LoopAttrs>, values: readonly Tensor[]): Tensor[] {
  const { scans, carriedOut, maxTrips } = node.attrs;
  const missing = values.filter(t => !scans.includes(t));
  scans.push(...missing);
  node.graph.addOutputs(
    node,
    missing.map(t => ({ shape: [maxTrips, ...t.shape], dtype: t.dtype })),
  );
  return values.map(t => node.outputs[carriedOut.length + 1 + scans.indexOf(t)]);
}

/** The tensors from outside that a loop's body computes `results` with; all that it computes, unless told. */
export function captures(node: Node<LoopAttrs>, results = bodyResults(node.attrs)): Tensor[] {
  const { body } = node.attrs;
  const found = new Set<Tensor>();
  const seen = new Set<Tensor>();
  const stack = [...results];
  while (stack.length > 0) {
    const t = stack.pop()!;
    if (seen.has(t)) continue;
    seen.add(t);
    if (!t.node.graph.sees(body)) found.add(t);
    else stack.push(...(isLoop(t.node) ? [...t.node.inputs, ...captures(t.node)] : t.node.inputs));
  }
  return [...found];
}

function bodyResults({ carriedOut, scans, goOn }: LoopAttrs): readonly Tensor[] {
  return goOn ? [...carriedOut, ...scans, goOn] : [...carriedOut, ...scans];
}

/** The captures that its values depend on, and not only when it ends. */
export function valueCaptures(node: Node<LoopAttrs>): Tensor[] {
  return captures(node, [...node.attrs.carriedOut, ...node.attrs.scans]);
}

/** What a node's values depend on: its inputs and, for a loop, what its body takes from outside. */
export function operandsOf(node: Node): readonly Tensor[] {
  return isLoop(node) ? [...node.inputs, ...valueCaptures(node)] : node.inputs;
}
