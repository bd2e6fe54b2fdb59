/** Settings that trainers print before they begin. */
import { isObject } from './json.ts';
import { typed } from './markdown-table.ts';
import { settingsOf } from './printed-records.ts';
import { parsePythonDict } from './python.ts';
import type { Setting } from './run-builder.ts';

const mostSettings = 256;

/** Settings below a line that says whose they are, indented: `\tlearning_rate:\t0.0003`. */
export function indentedSettings(): {
  line(text: string): boolean;
  readonly found: [string, string, Setting][];
} {
  const found: [string, string, Setting][] = [];
  let owner: string | undefined;
  let parents: { indent: number; name: string }[] = [];
  return {
    found,
    line(text) {
      const begins = settingsOf(text);
      if (begins !== undefined) {
        owner = begins;
        parents = [];
        return true;
      }
      if (owner === undefined) return false;
      const entry = text.length > 400 ? null : /^([ \t]+)([\w-]{1,80}):[ \t]*(.*?)[ \t]*$/.exec(text);
      if (entry === null || found.length >= mostSettings) {
        owner = undefined;
        return false;
      }
      const [, space, name, value] = entry;
      const indent = space.replaceAll('\t', '  ').length;
      parents = parents.filter(parent => parent.indent < indent);
      const path = [...parents.map(parent => parent.name), name].join('/');
      if (value === '') parents.push({ indent, name });
      else found.push([owner, path, typed(value)]);
      return true;
    },
  };
}

/** Settings that a trainer prints before it begins are a few hundred lines. */
const longestSettings = 2 ** 17;
const mostTries = 64;

/** Puts together a dictionary of settings that is printed over many lines, as verl does when it begins. */
export function settingsWatch(): { line(text: string): Record<string, unknown> | undefined } {
  let text = '';
  let tries = 0;
  return {
    line(line) {
      if (/^\s*\{'actor_rollout_ref'/.test(line)) [text, tries] = [line.trim(), 0];
      else if (text === '') return undefined;
      else text += ` ${line.trim()}`;
      if (text.length > longestSettings || tries > mostTries) text = '';
      if (text === '' || !line.trimEnd().endsWith('}')) return undefined;
      tries++;
      const value = parsePythonDict(text, 0);
      if (!isObject(value)) return undefined;
      text = '';
      return value;
    },
  };
}
