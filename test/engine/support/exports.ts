import * as engine from '../../../src/engine/index.ts';

/** Exported functions that are no operators. Whatever else is exported needs a case and a closed form. */
const others = ['checkShape', 'compile', 'evaluate', 'grad', 'saveOnnx', 'showShape', 'sizeOf', 'toOnnx'];

/** Names of the operators that the engine exports. */
export function exportedOperators(): string[] {
  return Object.entries(engine)
    .filter(([, v]) => typeof v === 'function' && !/^class\b/.test(String(v)))
    .map(([name]) => name)
    .filter(name => !others.includes(name));
}
