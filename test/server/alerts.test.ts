/** Where alerts may go: addresses that are sent to, and programs that are started. */
import { expect, test } from 'vitest';
import { checkWebhook, wordsOf } from '../../src/server/alerts.ts';

test('only http and https are sent to', () => {
  expect(checkWebhook('https://example.org/hook?a=1')).toBe('https://example.org/hook?a=1');
  expect(checkWebhook('http://127.0.0.1:9/x')).toBe('http://127.0.0.1:9/x');
  for (const address of ['file:///etc/passwd', 'ftp://example.org/x', 'data:text/plain,x', 'javascript:1'])
    expect(() => checkWebhook(address)).toThrow(/only http: and https: are sent to/);
  expect(() => checkWebhook('example.org')).toThrow(/is not an address/);
});

test('a command is a program and its words; quotes keep spaces, and nothing else means anything', () => {
  expect(wordsOf(`notify "high KL" 'and more' $HOME;rm`)).toEqual([
    'notify',
    'high KL',
    'and more',
    '$HOME;rm',
  ]);
  expect(() => wordsOf('  ')).toThrow(/is empty/);
  expect(() => wordsOf('"" x')).toThrow(/is empty/);
});
