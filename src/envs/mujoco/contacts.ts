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

/** A geom of a body, and what it moves with. */
export interface Geom {
  readonly name: string;
  readonly kind: (typeof KINDS)[number];
  readonly mover: Mover;
}

/** What moves as one: a body with a joint, and those below it that have none. */
interface Mover {
  readonly on: Mover | null;
}

/** In the order in which MuJoCo puts the two geoms of a contact. */
const KINDS = ['sphere', 'capsule', 'ellipsoid', 'cylinder', 'box'] as const;

/** The geoms of a body and of all that hangs from it, in the compiled model's order. Each has a name and a type. */
export function geomsOf(body: Element, on: Mover | null = null): Geom[] {
  const moves = on === null || body.children.some(({ tag }) => tag === 'joint' || tag === 'freejoint');
  const mover = moves ? { on } : on;
  const own = body.children.filter(({ tag }) => tag === 'geom');
  const below = body.children.filter(({ tag }) => tag === 'body');
  return [
    ...own.map(({ attributes }) => ({
      name: String(attributes.name),
      kind: attributes.type as Geom['kind'],
      mover,
    })),
    ...below.flatMap(child => geomsOf(child, mover)),
  ];
}

/**
 * The pairs of a robot's own geoms that can meet: all but those that move as one or that a joint connects. They are in the
 * order in which MuJoCo sorts contacts: a solver that goes from one to the next gives other bits in another.
 */
export function ownContacts(geoms: readonly Geom[]): (readonly [geom1: string, geom2: string])[] {
  const pairs: [first: number, second: number][] = [];
  geoms.forEach(({ kind, mover }, i) => {
    for (let k = i + 1; k < geoms.length; k++) {
      const other = geoms[k];
      if (other.mover === mover || other.mover.on === mover || other.mover === mover.on) continue;
      pairs.push(KINDS.indexOf(kind) <= KINDS.indexOf(other.kind) ? [i, k] : [k, i]);
    }
  });
  pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return pairs.map(([first, second]) => [geoms[first].name, geoms[second].name]);
}
