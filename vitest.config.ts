import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/shared-scratch.ts'],
    setupFiles: ['test/property-seed.ts'],
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 240_000,
  },
});
