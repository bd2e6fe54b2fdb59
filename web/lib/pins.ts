/** Pins that would overlap are drawn as one with a count. */

/** Something to pin at a place on the x axis. */
export interface Pin {
  readonly x: number;
  /** Its end, for what lasts. */
  readonly to?: number;
  readonly kind: string;
  /** How loud: the loudest of a group gives it its look. */
  readonly weight: number;
  readonly text: string;
}

export interface PinGroup {
  /** Pixels from the left of the plot. */
  readonly left: number;
  readonly pins: readonly Pin[];
  /** The loudest pin; of equals the first. */
  readonly lead: Pin;
}

/** By how loud they are; kept for each list, since a plot is drawn often and its pins seldom change. */
const byWeight = new WeakMap<readonly Pin[], readonly Pin[]>();

/**
 * Groups pins so that groups are at least `gap` pixels apart. The loudest are placed first, where they truly are, and
 * take in the quieter ones around them. What lies outside 0 … width is left out; what began before it and lasts into it is
 * kept, at the left edge.
 */
export function groupPins(
  pins: readonly Pin[],
  toPixel: (x: number) => number,
  width: number,
  gap: number,
): PinGroup[] {
  let ordered = byWeight.get(pins);
  if (ordered === undefined) {
    ordered = [...pins].sort((a, b) => b.weight - a.weight);
    byWeight.set(pins, ordered);
  }
  // One cell is as wide as the gap, so it holds at most one group, and only its neighbours can be too near.
  const cells = new Map<number, { left: number; pins: Pin[]; lead: Pin }>();
  for (const pin of ordered) {
    let left = toPixel(pin.x);
    if (left < 0 && pin.to !== undefined && toPixel(pin.to) >= 0) left = 0;
    if (!(left >= -0.5 && left <= width + 0.5)) continue;
    const cell = Math.floor(left / gap);
    let near: { left: number; pins: Pin[] } | undefined;
    for (let i = cell - 1; i <= cell + 1; i++) {
      const other = cells.get(i);
      if (other === undefined || Math.abs(other.left - left) >= gap) continue;
      if (near === undefined || Math.abs(other.left - left) < Math.abs(near.left - left)) near = other;
    }
    if (near !== undefined) near.pins.push(pin);
    else cells.set(cell, { left, pins: [pin], lead: pin });
  }
  return [...cells.values()].sort((a, b) => a.left - b.left);
}

/** The group nearest to a place, if it is within `reach` pixels. */
export function groupAt(groups: readonly PinGroup[], left: number, reach: number): PinGroup | null {
  let best: PinGroup | null = null;
  let distance = reach;
  for (const group of groups) {
    const d = Math.abs(group.left - left);
    if (d <= distance) {
      distance = d;
      best = group;
    }
  }
  return best;
}

/** What a group holds, as a few lines: the loudest first, equal kinds counted. */
export function describeGroup(group: PinGroup, titles: (kind: string) => string, limit = 5): string[] {
  const byKind = new Map<string, Pin[]>();
  const loudest = [...group.pins].sort((a, b) => b.weight - a.weight);
  for (const pin of loudest) byKind.set(pin.kind, [...(byKind.get(pin.kind) ?? []), pin]);
  const lines = [...byKind].map(([kind, pins]) =>
    pins.length === 1
      ? `${titles(kind)}: ${pins[0].text}`
      : `${pins.length} × ${titles(kind)}, such as: ${pins[0].text}`,
  );
  return lines.length <= limit
    ? lines
    : [...lines.slice(0, limit - 1), `and ${lines.length - limit + 1} other kinds`];
}
