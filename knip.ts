/** `npm run check:unused`: what is exported is imported somewhere, and every file is reached from one that is run. */
import type { KnipConfig } from 'knip';
import packageJson from './package.json' with { type: 'json' };

/** The package's doors: what they export is for others. */
const doors = Object.values(packageJson.exports).flatMap(target =>
  typeof target === 'string' ? [] : [target.default.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts')],
);

/** A component's code: its scripts, and what its markup imports. What it exports is used by `bind:this`, unseen here. */
function codeOf(component: string): string {
  const scripts = [...component.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, code]) => code);
  const markup = component.replaceAll(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, '');
  const imports = [...markup.matchAll(/\bimport\('[^']+'\)/g)].map(([expression]) => `${expression};`);
  return [...scripts, ...imports].join('\n').replaceAll(/\bexport (?=function )/g, '');
}

const config: KnipConfig = {
  entry: [
    ...doors,
    'src/cli/main.ts',
    'typedoc.config.js',
    'vitest.config.ts',
    'web/main.ts',
    'test/**/*.test.ts',
    'test/{shared-scratch,property-seed}.ts',
    // Started by their path, as threads and as a process.
    'src/**/thread.ts',
    'src/sweep/places/child.ts',
    'src/algos/ppo/shards/process.ts',
    'bench/sweep/slow-env.ts',
    'test/runs/support/train.ts',
    'bench/doctor/make-runs.ts',
    'bench/doctor/lm/make-runs.ts',
    'bench/crash/die-at-call.ts',
    'bench/fuzz/thread.ts',
    'examples/*.{ts,mts}',
    'tools/*.ts',
    // Run by hand, as they say; and files that a test gives to Keel as a user's.
    'test/envs/mujoco/compare.ts',
    'test/page/support/take-pictures.ts',
    'test/page/support/take-lineage.ts',
    'test/**/fixtures/**/*.ts',
  ],
  // Its config names files by patterns, which knip takes for names.
  vitest: false,
  vite: false,
  typedoc: false,
  project: ['{bench,bin,examples,src,test,tools,web}/**/*.{ts,mts,js,svelte}'],
  compilers: { svelte: codeOf },
  // The file that the page's test reads from the package, without importing it.
  ignoreDependencies: ['axe-core'],
  // Operators are found by the test that wants a case for each of them.
  ignoreIssues: { 'src/engine/ops/*.ts': ['exports'] },
  // A type that stands in a signature is part of it; a value that only its own file uses is not exported.
  ignoreExportsUsedInFile: { interface: true, type: true },
};

export default config;
