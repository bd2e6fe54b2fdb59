/** A camera around a point: where it is, as angles and a distance. */
export interface Orbit {
  /** Around the vertical, 0 looks along -x; radians. */
  readonly azimuth: number;
  /** Above the horizon, radians. */
  readonly elevation: number;
  /** Metres. */
  readonly distance: number;
}

const lowest = -0.05;
const highest = 1.5;

/** The view in which a robot of that size begins: from the side and a little ahead, as it walks along x. */
export const firstOrbit = (radiusM: number): Orbit => ({
  azimuth: -1.05,
  elevation: 0.3,
  distance: 3.7 * radiusM,
});

export function turned({ azimuth, elevation, distance }: Orbit, right: number, up: number): Orbit {
  return {
    azimuth: azimuth + right,
    elevation: Math.min(highest, Math.max(lowest, elevation + up)),
    distance,
  };
}

/** Nearer with a factor below 1; never into the robot, never out of sight. */
export function zoomed(orbit: Orbit, factor: number, radiusM: number): Orbit {
  const distance = Math.min(40 * radiusM, Math.max(0.8 * radiusM, orbit.distance * factor));
  return { ...orbit, distance };
}

/** From the point looked at to the camera. */
export function offsetOf({ azimuth, elevation, distance }: Orbit): [number, number, number] {
  const flat = distance * Math.cos(elevation);
  return [flat * Math.cos(azimuth), flat * Math.sin(azimuth), distance * Math.sin(elevation)];
}

/** The angle of the picture's height that cameras here have, in degrees. */
export const fieldOfViewDegrees = 38;

/** What a camera that follows looks at: a jump or a stumble should be seen as one, so the height counts only in part. */
export function lookAtHeight(rootZ: number, groundZ: number, radiusM: number): number {
  return groundZ + Math.max(0.15 * radiusM, 0.85 * (rootZ - groundZ));
}

/** Cells of a floor, of a length that people use: .1, .2, .5, 1, 2 … metres, at most .7 of the robot's radius. */
export function cellOf(radiusM: number): number {
  const wanted = 0.7 * radiusM;
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * ([1, 2, 5].findLast(step => step * power <= wanted * (1 + 1e-9)) ?? 1);
}

/** From what is lit to the light, not of length 1. */
export const lightFrom = [-1.6, -2.2, 4.6] as const;
