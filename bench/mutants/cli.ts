import { mutantsOf } from './mutant.ts';

/** The command line. */
export const cli = mutantsOf('src/cli', [
  [
    'progress.ts',
    'if (event.step > lastStep) early.push(event);',
    'if (event.step >= lastStep) early.push(event);',
    'cli/progress',
    'boundary',
  ],
  [
    'progress.ts',
    '      showHeld(rowStep, row);\n      row();\n      show(',
    '      row();\n      show(',
    'cli/progress',
    'dropped',
  ],
  ['progress.ts', 'if (now - at < EVENT_MS) {', 'if (false) {', 'cli/progress', 'bound'],
  [
    'progress.ts',
    'show(withCount(one.line, one.held - 1, one.since));',
    'show(withCount(one.line, one.held, one.since));',
    'cli/progress',
    'off-by-one',
  ],
  [
    'progress.ts',
    "row['episode/return'] ?? speed.episodeReturn",
    "row['episode/return']",
    'cli/progress',
    'dropped',
  ],
  ['settings.ts', 'if (at < 1) throw', 'if (at < 0) throw', 'cli/settings', 'boundary'],
  [
    'settings.ts',
    'const env = envArgument ?? envSetting;',
    'const env = envSetting ?? envArgument;',
    'cli/settings',
    'precedence',
  ],
  [
    'settings.ts',
    'envOptions = { ...envOptions, ...value };',
    'envOptions = { ...value } as Settings;',
    'cli/settings',
    'merge',
  ],
  [
    'errors.ts',
    "wrongUse.has(error.code ?? '') ? exitCodes.wrongUse",
    "wrongUse.has(error.code ?? '') ? exitCodes.failed",
    'cli/errors',
    'exit',
  ],
  ['errors.ts', 'print(withoutControls(text))', 'print(text)', 'cli/hostile', 'escape'],
]);
