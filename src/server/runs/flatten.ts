/** Nested settings as one level: names joined with a dot, lists as text. */
export type Setting = string | number | boolean | null;

const mostSettings = 4096;
const deepest = 12;
const longest = 2000;

export function flatten(value: object): Record<string, Setting> {
  const out: Record<string, Setting> = {};
  let left = mostSettings;
  const add = (prefix: string, at: unknown, depth: number): void => {
    if (left <= 0) return;
    if (typeof at === 'object' && at !== null && !Array.isArray(at) && depth < deepest) {
      for (const [key, inner] of Object.entries(at))
        add(prefix === '' ? key : `${prefix}.${key}`, inner, depth + 1);
      return;
    }
    left--;
    out[prefix] = settingOf(at);
  };
  add('', value, 0);
  return out;
}

export function settingOf(value: unknown): Setting {
  switch (typeof value) {
    case 'string':
      return value.slice(0, longest);
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'object':
      return value === null ? null : (JSON.stringify(value) ?? '').slice(0, longest);
    default:
      return null;
  }
}
