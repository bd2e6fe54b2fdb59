import { describe, expect, test } from 'vitest';
import { cartPoleDefinition } from '../../src/envs/classic/cart-pole.ts';
import { defineEnv, type EnvDefinition } from '../../src/envs/definition.ts';

describe('hooks of a definition are refused where they are wrong', () => {
  const open = () => () => ({});
  test.each<[object, string]>([
    [{ checkpoint: 'frist' }, 'environment CartPole-v1: checkpoint "frist" is neither best nor last'],
    [{ recording: { tab: 'cluster' } }, 'use { tab, open }'],
    // It is a file's name as well.
    [
      { recording: { tab: 'manifest', open } },
      'the tab "manifest" of its recording is none of the page\'s: there is cluster',
    ],
    [{ recording: { tab: '../escape', open } }, 'the tab "../escape" of its recording is none'],
  ])('%j', (hooks, message) => {
    expect(() => defineEnv({ ...cartPoleDefinition, ...hooks } as EnvDefinition)).toThrow(message);
  });

  test('and taken where they are right', () => {
    const hooks = { checkpoint: 'last', recording: { tab: 'cluster', open } } as const;
    expect(defineEnv({ ...cartPoleDefinition, ...hooks } as EnvDefinition)).toMatchObject(hooks);
  });
});
