/** Pins that would overlap are drawn as one with a count. */

/** Something to pin at a place on the x axis. */
export interface Pin {
  readonly x: number;
  /** Its end, for what lasts. */
  readonly to?: number;
  readonly kind: string;
  /** How loud: the loudest of a cluster gives it its look. */
  readonly weight: number;
  readonly text: string;
}

export interface Cluster {
  /** Pixels from the left of the plot. */
  readonly left: number;
  readonly pins: readonly Pin[];
  /** The loudest pin; of equals the first. */
  readonly lead: Pin;
}

/**
 * Groups pins, sorted by x, so that clusters are at least `gap` pixels apart from the first pin of each. What lies
 * outside 0 … width is left out.
 */
export function clusterPins(
  pins: readonly Pin[],
  toPixel: (x: number) => number,
  width: number,
  gap: number,
): Cluster[] {
  const clusters: { left: number; pins: Pin[]; lead: Pin }[] = [];
  for (const pin of pins) {
    const left = toPixel(pin.x);
    if (!(left >= -0.5 && left <= width + 0.5)) continue;
    const last = clusters.at(-1);
    if (last !== undefined && left - last.left < gap) {
      last.pins.push(pin);
      if (pin.weight > last.lead.weight) last.lead = pin;
    } else clusters.push({ left, pins: [pin], lead: pin });
  }
  return clusters;
}

/** The cluster nearest to a place, if it is within `reach` pixels. */
export function clusterAt(clusters: readonly Cluster[], left: number, reach: number): Cluster | null {
  let best: Cluster | null = null;
  let distance = reach;
  for (const cluster of clusters) {
    const d = Math.abs(cluster.left - left);
    if (d <= distance) {
      distance = d;
      best = cluster;
    }
  }
  return best;
}

/** What a cluster holds, as a few lines: the loudest first, equal kinds counted. */
export function describeCluster(cluster: Cluster, titles: (kind: string) => string, limit = 5): string[] {
  const byKind = new Map<string, Pin[]>();
  const loudest = [...cluster.pins].sort((a, b) => b.weight - a.weight);
  for (const pin of loudest) byKind.set(pin.kind, [...(byKind.get(pin.kind) ?? []), pin]);
  const lines = [...byKind].map(([kind, pins]) =>
    pins.length === 1
      ? `${titles(kind)}: ${pins[0]!.text}`
      : `${pins.length} × ${titles(kind)}, such as: ${pins[0]!.text}`,
  );
  return lines.length <= limit
    ? lines
    : [...lines.slice(0, limit - 1), `and ${lines.length - limit + 1} other kinds`];
}
