import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { didYouMean, nearest, nearestFew } from '../../src/base/nearest.ts';
import { processorMs } from '../support/processor-time.ts';

describe('nearest', () => {
  it('finds what was meant, and nothing where nothing is close', () => {
    const names = ['observation', 'action', 'advantage'];
    expect(nearest('observatoin', names)).toBe('observation');
    expect(nearest('Action', names)).toBe('action');
    expect(nearest('advantages', names)).toBe('advantage');
    expect(nearest('reward', names)).toBeUndefined();
    expect(nearest('x', [])).toBeUndefined();
  });

  it('looks through case and separators, and sees a part', () => {
    expect(nearest('learning_rate', ['gamma', 'learningRate'])).toBe('learningRate');
    expect(nearest('MOUNTAIN-CAR', ['CartPole', 'MountainCarContinuous'])).toBe('MountainCarContinuous');
    // One letter is a part of almost everything.
    expect(nearest('axis', ['x'])).toBeUndefined();
  });

  it('prefers the closer of two that contain it', () => {
    expect(nearest('step', ['stepsPerRollout', 'steps'])).toBe('steps');
    expect(nearestFew('probe', ['ProbeLong', 'Probe1', 'Other'], 5)).toEqual(['Probe1', 'ProbeLong']);
  });

  it('is the word itself when that is there, whatever else is', () => {
    const word = fc.stringMatching(/^[a-z]{1,12}$/);
    fc.assert(
      fc.property(word, fc.array(word), (own, others) => {
        expect(nearest(own, [...others, own])).toBe(own);
      }),
    );
  });

  it('gives up on what is too long to be a slip', () => {
    const started = processorMs();
    expect(nearest('x'.repeat(1e6), ['x'.repeat(1e6)])).toBeUndefined();
    expect(nearest('short', ['x'.repeat(1e6)])).toBeUndefined();
    expect(processorMs() - started).toBeLessThan(1000);
    // Not even where one contains the other.
    expect(nearest('gamma'.repeat(41), ['gamma'])).toBeUndefined();
    expect(nearest('gamma'.repeat(40), ['gamma'])).toBe('gamma');
  });
});

it('didYouMean asks in one sentence, or says nothing', () => {
  expect(didYouMean('gama', ['gamma', 'seed'])).toBe('did you mean gamma?');
  expect(didYouMean('probe', ['Probe1', 'Probe2', 'Probe3'], 3)).toBe(
    'did you mean Probe1, Probe2 or Probe3?',
  );
  expect(didYouMean('probe', ['Probe1', 'Probe2', 'Probe3'], 2)).toBe('did you mean Probe1 or Probe2?');
  expect(didYouMean('zzzz', ['gamma'])).toBe('');
});
