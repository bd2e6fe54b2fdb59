/** What is read of an archive: how much, and under which names. */

/** Files of one archive. */
export const mostMembers = 20_000;
/** Bytes of one member, and of all that are unpacked of one archive. */
export const largestMember = 2 ** 28;
export const mostUnpacked = 2 ** 31;

/** What has to be in memory as a whole: a JSON document, docker's log. */
export const mostInMemory = 2 ** 26;

/** As for gzip (`bytes.ts`): logs pack a hundred to one at most, and zeros a thousand to one. */
export const expansionLimit = (packed: number): number => 16 * 2 ** 20 + 200 * packed;

/** A member's path if it stays inside: neither absolute nor with `..`, no control characters, no second container's mark. */
export function safeName(raw: string): string | undefined {
  const name = raw.replace(/^(?:\.\/)+/, '');
  if (name === '' || name.length > 1024 || name.includes('!/') || /^\/|^[A-Za-z]:|\\/.test(name))
    return undefined;
  for (let i = 0; i < name.length; i++) if (name.charCodeAt(i) < 32) return undefined;
  return name.split('/').some(part => part === '..' || part === '' || part === '.') ? undefined : name;
}

/** Why files of an archive were left out, and how many: of the archives that were opened last. */
const leftOut = new Map<string, Map<string, number>>();
const mostArchives = 64;

/** Begins to count for an archive. */
export function tellLeftOut(path: string): (why: string) => void {
  const whys = new Map<string, number>();
  leftOut.delete(path);
  if (leftOut.size >= mostArchives) for (const [first] of [...leftOut].slice(0, 1)) leftOut.delete(first);
  leftOut.set(path, whys);
  return why => whys.set(why, (whys.get(why) ?? 0) + 1);
}

/** Sentences on what was left out of an archive. */
export function leftOutOf(path: string): string[] {
  return [...(leftOut.get(path) ?? [])].map(([why, count]) => `${path}: ${why} are left out (${count})`);
}
