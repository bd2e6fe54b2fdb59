/** A game with a board to look at: a snake eats apples, and dies where it bites itself or leaves the board. */
import { box, defineEnv, discrete, simulation } from 'keel';

const edge = 8;
const dx = [1, 0, -1, 0]; // right, down, left, up
const dy = [0, 1, 0, -1];
const turned = (way: number, action: number): number => (way + action + 3) % 4; // left, straight on, right

function ahead(cell: number, way: number): number | undefined {
  const [x, y] = [(cell % edge) + dx[way], Math.floor(cell / edge) + dy[way]];
  return x < 0 || y < 0 || x >= edge || y >= edge ? undefined : y * edge + x;
}

export default defineEnv({
  id: 'Snake-v0',
  description: 'Eat apples: 1 for each, -1 for dying.',
  maxEpisodeSteps: 400,
  make: () =>
    simulation({
      observationSpace: box({ shape: [5], low: -1, high: 1 }),
      actionSpace: discrete(3),
      measures: ['length'],
      stepSeconds: 0.15,
      // The body from its head on, which way it goes, the apple, steps since the last one.
      start: rng => ({ body: [27, 26, 25], way: 0, apple: 32 + rng.integer(32), hungry: 0 }),
      observe({ body: [head, ...tail], way, apple }) {
        const blocked = [0, 1, 2].map(action => {
          const next = ahead(head, turned(way, action));
          return next === undefined || tail.includes(next) ? 1 : 0;
        });
        const [x, y] = [(apple % edge) - (head % edge), Math.floor(apple / edge) - Math.floor(head / edge)];
        return [...blocked, Math.sign(x * dx[way] + y * dy[way]), Math.sign(y * dx[way] - x * dy[way])];
      },
      step(state, [action], result, rng) {
        state.way = turned(state.way, action);
        const next = ahead(state.body[0], state.way);
        if (next === undefined || state.body.includes(next) || state.hungry++ === 60) {
          result.reward = -1;
          result.terminated = true;
        } else if (state.body.unshift(next) && next === state.apple) {
          result.reward = 1;
          state.hungry = 0;
          while (state.body.includes(state.apple)) state.apple = rng.integer(edge * edge);
        } else state.body.pop();
        result.measures![0] = state.body.length;
      },
      draw({ body, apple }) {
        const cells: number[] = Array(edge * edge).fill(0);
        cells[apple] = 1;
        for (const cell of body) cells[cell] = cell === body[0] ? 3 : 2;
        const board = { kind: 'cells', x: 0, y: 0, size: 1, columns: edge, cells } as const;
        const label = { kind: 'text', x: 0.2, y: 8.5, size: 0.7, text: `length ${body.length}` } as const;
        return {
          width: 8,
          height: 9,
          shapes: [{ ...board, colours: ['#eef1f4', 'red', 'green', 'blue'] }, label],
        };
      },
    }),
});
