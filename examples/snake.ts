/**
 * A game of one's own with a board to look at: a snake eats apples and dies where it bites itself or leaves the board.
 *
 *     keel train ./snake.ts --steps 300000      the page's tab shows the newest policy as it plays
 *     keel render last --out snake.gif
 */
import { box, defineEnv, discrete, simulation } from 'keel';

const edge = 8;
const turns = [-1, 0, 1]; // left, straight on, right
const ways = [[1, 0], [0, 1], [-1, 0], [0, -1]]; // biome-ignore format: a table
const after = (cell: number, way: number): number => {
  const [x, y] = [(cell % edge) + ways[way][0], Math.floor(cell / edge) + ways[way][1]];
  return x < 0 || y < 0 || x >= edge || y >= edge ? -1 : y * edge + x;
};

export default defineEnv({
  id: 'Snake-v0',
  description: 'Eat apples; 1 for each, -1 for dying.',
  maxEpisodeSteps: 400,
  make: () =>
    simulation({
      observationSpace: box({ shape: [8], low: -1, high: 1 }),
      actionSpace: discrete(3),
      measures: ['length'],
      stepSeconds: 0.15,
      // The body from its head on, where it is going, the apple, and steps since the last one.
      start: rng => ({ body: [27, 26, 25], way: 0, apple: 28 + rng.integer(8), hungry: 0 }),
      observe({ body, way, apple }) {
        const [dx, dy] = [
          (apple % edge) - (body[0] % edge),
          Math.floor(apple / edge) - Math.floor(body[0] / edge),
        ];
        const [x, y] = ways[way];
        const blocked = turns.map(turn => {
          const next = after(body[0], (way + turn + 4) % 4);
          return next < 0 || body.includes(next) ? 1 : 0;
        });
        const ahead = dx * x + dy * y; // of the apple, as the snake sees it
        const right = dy * x - dx * y;
        return [...blocked, ahead / edge, right / edge, Math.sign(ahead), Math.sign(right), body.length / 64];
      },
      step(state, [action], result, rng) {
        state.way = (state.way + turns[action] + 4) % 4;
        const next = after(state.body[0], state.way);
        const dead = next < 0 || state.body.slice(0, -1).includes(next) || state.hungry++ > 60;
        if (!dead) state.body.unshift(next);
        if (!dead && next === state.apple) {
          result.reward = 1;
          state.hungry = 0;
          do state.apple = rng.integer(edge * edge);
          while (state.body.includes(state.apple) && state.body.length < edge * edge);
        } else if (!dead) state.body.pop();
        if (dead) result.reward = -1;
        result.terminated = dead;
        result.measures![0] = state.body.length;
      },
      draw({ body, apple }) {
        const cells = Array.from({ length: edge * edge }, (_, i) =>
          i === body[0] ? 3 : body.includes(i) ? 2 : i === apple ? 1 : 0,
        );
        const label = { kind: 'text', x: 0.2, y: 8.5, size: 0.7, text: `length ${body.length}` } as const;
        return {
          width: 8,
          height: 9,
          shapes: [
            {
              kind: 'cells',
              x: 0,
              y: 0,
              size: 1,
              columns: edge,
              cells,
              colours: ['#eef1f4', 'red', 'green', 'blue'],
            },
            label,
          ],
        };
      },
    }),
});
