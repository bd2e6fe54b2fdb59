/** One place where two settings differ; undefined where one of them lacks it. */
export interface Difference {
  /** Dotted: `reward.scale`. */
  readonly path: string;
  readonly saved: unknown;
  readonly wanted: unknown;
}

/** Where two plain settings differ, such as a checkpoint's environment and the one a resume asks for. */
export function differences(saved: unknown, wanted: unknown, path = ''): Difference[] {
  if (Object.is(saved, wanted)) return [];
  if (!isGroup(saved) || !isGroup(wanted) || Array.isArray(saved) !== Array.isArray(wanted)) {
    return [{ path, saved, wanted }];
  }
  const keys = new Set([...Object.keys(saved), ...Object.keys(wanted)]);
  return [...keys].flatMap(key =>
    differences(own(saved, key), own(wanted, key), path === '' ? key : `${path}.${key}`),
  );
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function own(group: object, key: string): unknown {
  return Object.hasOwn(group, key) ? (group as Record<string, unknown>)[key] : undefined;
}
