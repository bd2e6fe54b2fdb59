/**
 * Imports go one way: `npm run check:imports` holds src/ and web/ to the table below, and
 * test/import-direction.test.ts holds the check to what it promises. Run it on "{src,web}", which may lack either.
 */
import { readFileSync } from 'node:fs';

/** What each folder of src/ may import, besides itself: only folders above it. cli, on top, may import everything. */
const mayImport = {
  base: [],
  pickle: ['base'],
  settings: ['base'],
  random: ['base'],
  engine: ['base'],
  metrics: ['base'],
  view: ['base', 'metrics'],
  envs: ['base', 'random', 'view'],
  tasks: ['base', 'random', 'envs'],
  nn: ['base', 'engine', 'random'],
  kl: ['base', 'engine', 'random'],
  lm: ['base', 'engine', 'nn', 'kl', 'random'],
  rollout: ['base', 'engine', 'nn', 'kl', 'envs', 'random'],
  runs: ['base', 'metrics', 'view'],
  studies: ['base', 'settings', 'metrics', 'runs', 'random'],
  doctor: ['base', 'settings', 'metrics', 'runs'],
  report: ['base', 'metrics', 'studies', 'doctor'],
  server: ['base', 'settings', 'metrics', 'view', 'runs', 'studies', 'doctor', 'report'],
  algos: [
    'base',
    'pickle',
    'settings',
    'engine',
    'nn',
    'kl',
    'lm',
    'rollout',
    'envs',
    'tasks',
    'random',
    'metrics',
    'view',
    'runs',
  ],
  // Where the trainer meets the doctor: it hands the one to the other.
  autopilot: ['base', 'doctor', 'algos'],
  sweep: [
    'base',
    'settings',
    'engine',
    'nn',
    'kl',
    'lm',
    'rollout',
    'envs',
    'tasks',
    'random',
    'metrics',
    'view',
    'runs',
    'algos',
    'doctor',
    'studies',
  ],
};

/**
 * Tables of settings are data: the doctor takes the trainer's names from them, a study checks its axes with them, the page's
 * form what may change. These folders may import these files of src/algos and no other; they need neither the engine nor
 * what is trained.
 */
const settingTables = [
  'src/algos/settings.ts',
  'src/algos/ppo/settings.ts',
  'src/algos/grpo/settings.ts',
  'src/algos/clone/text/settings.ts',
  'src/algos/clone/policy/settings.ts',
];
const mayImportTables = ['studies', 'doctor', 'server'];
/** What the tables themselves may import, besides each other. */
const tablesMayImport = ['src/base/', 'src/settings/', 'node_modules/zod/'];

/** Files directly in src/, such as index.ts, are the package's entries: all but the programs on top. */
const entriesMayNotImport = ['cli', 'server'];

/** The page runs in a browser, so it may take only these files; they must not need Node. */
const pageMayImport = [
  'src/metrics/registry.ts',
  'src/metrics/objectives.ts',
  'src/metrics/tones.ts',
  'src/runs/schema.ts',
  'src/runs/replay-format.ts',
  'src/view/drawing.ts',
  'src/view/scene.ts',
  'src/view/motion.ts',
  'src/view/orbit.ts',
  'src/view/pictures.ts',
  'src/doctor/findings.ts',
  'src/doctor/first-harm.ts',
  'src/server/api.ts',
  'src/studies/schema.ts',
  'src/studies/interquartile-mean.ts',
  'src/studies/statistics.ts',
];

/** The files behind the package's subpaths. */
const { exports: subpaths } = JSON.parse(readFileSync('package.json', 'utf8'));
const doors = Object.values(subpaths).flatMap(({ default: built }) =>
  built === undefined ? [] : [built.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts')],
);

const folders = Object.keys(mayImport);
folders.forEach((folder, i) => {
  const wrong = mayImport[folder].find(other => !folders.slice(0, i).includes(other));
  if (wrong !== undefined)
    throw new Error(`${folder} may import ${wrong}, which is not above it in the table: move it up`);
});

/** A pattern for any of these paths. */
const oneOf = paths => `^(${paths.map(path => path.replaceAll('.', '\\.')).join('|')})`;

const folderRules = folders.map(folder => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import ${mayImport[folder].join(', ') || 'no other folder'}.`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: {
    path: '^src/',
    pathNot: oneOf([
      ...[folder, ...mayImport[folder]].map(name => `src/${name}/`),
      ...(mayImportTables.includes(folder) ? settingTables : []),
    ]),
  },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folderRules,
    {
      name: 'entry-imports',
      comment: `Files directly in src/ may import all but ${entriesMayNotImport.join(', ')}.`,
      severity: 'error',
      from: { path: '^src/[^/]+$' },
      to: { path: oneOf(entriesMayNotImport.map(name => `src/${name}/`)) },
    },
    {
      name: 'setting-tables-import',
      comment: 'Tables of settings are data, for the doctor and the server too: they may import no trainer.',
      severity: 'error',
      from: { path: oneOf(settingTables) },
      to: {
        path: '^(src|node_modules)/',
        pathNot: oneOf([...settingTables, ...tablesMayImport]),
      },
    },
    {
      name: 'page-imports',
      comment: `web may import ${pageMayImport.join(', ')}.`,
      severity: 'error',
      // The build's own file runs in Node, and takes words out of what the page must not carry.
      from: { path: '^web/', pathNot: '^web/vite\\.config\\.ts$' },
      to: { path: '^(src|test|bench|examples|dist)/', pathNot: `${oneOf(pageMayImport)}$` },
    },
    {
      name: 'src-imports-src',
      comment:
        'What is published must not need what is not, nor itself by name (dist), which would pass by the table.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|examples|web|dist)/' },
    },
    {
      name: 'doors-are-for-others',
      comment:
        'An index.ts is a subpath of the package, for who installs it. Inside src/ import the file that has the thing; src/index.ts alone takes doors.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/index\\.ts$' },
      to: { path: '/index\\.ts$', pathNot: 'node_modules' },
    },
    {
      name: 'no-cycle',
      comment:
        'Files that import each other, if only for a type, are one file in two: take out what both need.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-undeclared-package',
      comment: 'Who installs the package gets only its dependencies: add it there, or do without.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-unresolvable',
      comment: 'The import leads nowhere: correct the path, or install the package.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  // A rule for a file needs no import to fail: this one asks of each file in an unknown folder for what cannot be.
  required: [
    {
      name: 'index-is-a-door',
      comment: 'An index.ts that is no subpath in package.json: name it after what is in it.',
      severity: 'error',
      module: { path: '^src/.*/index\\.ts$', pathNot: oneOf(doors) },
      to: { path: '^$' },
    },
    {
      name: 'folder-needs-a-rule',
      comment: 'A new folder of src/ needs a line in the table of .dependency-cruiser.mjs.',
      severity: 'error',
      module: { path: '^src/[^/]+/', pathNot: oneOf([...folders, 'cli'].map(name => `src/${name}/`)) },
      to: { path: '^$' },
    },
  ],
  options: {
    // Imports of types too, which the compiler removes.
    tsPreCompilationDeps: true,
    doNotFollow: { path: '(^|/)(node_modules|dist)/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
    },
  },
};
