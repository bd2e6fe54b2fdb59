/** Which bodies of a model can meet, said by name. */
import { type Attributes, type Element, element } from './mjcf.ts';

/** On geoms whose contacts are all named: keeps MuJoCo from searching for others. */
export const NAMED_CONTACTS_ONLY = { contype: 0, conaffinity: 0 } as const;

/**
 * A `contact` element of these pairs of geoms. Without it MuJoCo searches in every substep: it sorts all bodies along an
 * axis and compares trees of boxes, a sixth of the time of a robot that meets only the floor. Named pairs are looked at one
 * by one; the contacts, their order and so the trajectories are the same to the bit.
 *
 * `surface` is what the search would have taken from the two geoms, defaults included: a pair has its own.
 */
export function namedContacts(
  pairs: readonly (readonly [geom1: string, geom2: string, surface: Surface])[],
): Element {
  return element(
    'contact',
    {},
    pairs.map(([geom1, geom2, { friction, ...surface }]) => {
      const [slide, spin, roll] = friction;
      return element('pair', { geom1, geom2, friction: [slide, slide, spin, roll, roll], ...surface });
    }),
  );
}

/** How two geoms meet: MuJoCo's attributes of a pair, with the friction of a geom: sliding, spinning, rolling. */
export type Surface = Partial<Pick<Attributes, 'condim' | 'solimp' | 'solref' | 'margin'>> & {
  readonly friction: readonly [slide: number, spin: number, roll: number];
};
