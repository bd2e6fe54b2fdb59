import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';
import { rules } from '../src/doctor/rules/all.ts';
import { toneProperties } from '../src/metrics/tones.ts';
import { describeEventType, eventTypes } from '../src/runs/schema.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Titles and meanings of events, without the checks (and the library for them) that come with the schema. */
const eventKinds = Object.fromEntries(
  eventTypes.map(type => {
    const { title, doc } = describeEventType(type);
    return [type, { title, doc }];
  }),
);

/** What each rule looks for, without the rules. */
const ruleTitles = Object.fromEntries(rules.map(({ code, title }) => [code, title]));

/**
 * The server sends what a metric is and means together with it, so the page need not carry the registry's titles and texts as
 * well, nor groups, units, what is better and which KL it is: names in their order, and what bands hold for, are left.
 */
function registryWithoutTexts(): Plugin {
  const unused = new Set(['title', 'group', 'doc', 'healthy', 'better', 'kl', 'unit']);
  return {
    name: 'registry-without-texts',
    enforce: 'post',
    transform(code, id) {
      if (!id.includes('/src/metrics/entries/')) return null;
      const cuts: [number, number][] = [];
      const visit = (node: unknown): void => {
        if (node === null || typeof node !== 'object') return;
        const { type, key, properties, start, end } = node as Partial<Span> & Named;
        // A group of metrics has a title as well, and needs it.
        if (type === 'ObjectExpression' && !properties?.some(({ key }) => key?.name === 'better')) return;
        if (type === 'Property' && unused.has(key?.name ?? '')) {
          // With the comma behind it.
          const comma = /^\s*,/.exec(code.slice(end))?.[0].length ?? 0;
          cuts.push([start!, end! + comma]);
        } else for (const child of Object.values(node)) visit(child);
      };
      visit(this.parse(code));
      return cuts
        .sort((a, b) => b[0] - a[0])
        .reduce((text, [from, to]) => text.slice(0, from) + text.slice(to), code);
    },
  };
}

/** The tones as custom properties, where the style sheet asks for them: their colours stand in src/metrics/tones.ts. */
function tonesInStyle(): Plugin {
  return {
    name: 'tones-in-style',
    enforce: 'pre',
    transform(code, id) {
      if (!id.split('?')[0].endsWith('/web/app.css')) return null;
      return code.replaceAll(/\/\* tones: (light|dark) \*\//g, (_, theme: 'light' | 'dark') =>
        toneProperties(theme),
      );
    },
  };
}

interface Named {
  readonly key?: { readonly name?: string };
  readonly properties?: readonly Named[];
}

interface Span {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** Builds the page into dist/web, from where the server of the package serves it: no CDN, works offline. */
export default defineConfig({
  root: here('.'),
  base: './',
  plugins: [svelte({ configFile: false }), registryWithoutTexts(), tonesInStyle()],
  define: {
    __EVENT_KINDS__: JSON.stringify(eventKinds),
    __RULE_TITLES__: JSON.stringify(ruleTitles),
  },
  build: {
    outDir: here('../dist/web'),
    emptyOutDir: true,
    target: 'es2022',
    // The server's content policy allows no data: addresses but for pictures that the page makes itself.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The 3D library is one piece, and loaded only by who opens the robot.
    chunkSizeWarningLimit: 600,
  },
  // For `keel dash --port 6006 --no-token`.
  server: { proxy: { '/api': process.env.KEEL_SERVER ?? 'http://127.0.0.1:6006' } },
});
