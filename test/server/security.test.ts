/** Each rule of who may ask, with requests as an attacker would send them. */

import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunList } from '../../src/server/api.ts';
import { hostAllowed, hostOf } from '../../src/server/http/security.ts';
import { patienceMs } from '../support/until.ts';
import { ask, listen, start } from './support/client.ts';
import { makeRun, scratch } from './support/make-run.ts';

const root = scratch();
makeRun(root, 'run-a', 8).writer.end('finished');
const { port, get, send } = await start({ roots: [root] });
const { runs } = (await get('/api/runs')).json<RunList>();
const id = runs[0].id;

describe('host', () => {
  test.each(['localhost', '127.0.0.1', '[::1]', 'LOCALHOST'])(
    '%s is this server, with any port',
    async host => {
      expect((await get('/api/hello', { host: `${host}:${port}` })).status).toBe(200);
      expect((await get('/api/hello', { host })).status).toBe(200);
      // As through a tunnel.
      expect((await get('/api/hello', { host: `${host}:8080` })).status).toBe(200);
    },
  );

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    'localhost@evil.example',
    'evil.example#localhost',
    '[::2]',
    'a'.repeat(400),
  ])('%s is not: a name that was made to lead here', async host => {
    for (const path of ['/api/hello', '/api/runs', `/api/runs/${id}`, '/']) {
      const { status, text } = await get(path, { host });
      expect([400, 403]).toContain(status);
      expect(text).not.toContain('run-a');
    }
    expect([400, 403]).toContain((await listen(port, { host })).response.statusCode);
  });

  test('none at all is not ours either', async () => {
    const text = await new Promise<string>((resolve, reject) => {
      let got = '';
      const socket = connect(port, '127.0.0.1', () => socket.end('GET /api/runs HTTP/1.0\r\n\r\n'));
      socket.on('data', part => {
        got += part.toString();
      });
      socket.on('close', () => resolve(got));
      socket.on('error', reject);
    });
    expect(text).toMatch(/^HTTP\/1\.1 40[03]/);
    expect(text).not.toContain('run-a');
  });

  test('the names of a machine that listens on all its addresses', () => {
    expect(hostAllowed('192.168.1.7', '0.0.0.0')).toBe(true);
    expect(hostAllowed(hostname().toLowerCase(), '0.0.0.0')).toBe(true);
    expect(hostAllowed('evil.example', '0.0.0.0')).toBe(false);
    expect(hostAllowed('192.168.1.7', '127.0.0.1')).toBe(false);
    expect(hostAllowed('192.168.1.7', '192.168.1.7')).toBe(true);
    expect(hostOf('[fe80::1]:80')).toBe('fe80::1');
    expect(hostOf(undefined)).toBeUndefined();
  });
});

describe('origin', () => {
  const strangers = [
    'https://evil.example',
    'null',
    'http://localhost.evil.example',
    'http://127.0.0.1:1',
    'garbage',
  ];
  test.each(strangers)('%s may neither change nor read', async origin => {
    const host = `127.0.0.1:${port}`;
    const patched = await send('PATCH', `/api/runs/${id}/notes`, { note: 'hacked' }, { origin, host });
    expect(patched.status).toBe(403);
    expect(patched.json<{ error: { code: string } }>().error.code).toBe('wrong-origin');
    expect((await send('POST', `/api/runs/${id}/actions`, { type: 'stop' }, { origin, host })).status).toBe(
      403,
    );
    expect((await get('/api/runs', { origin, host })).status).toBe(403);
    expect((await listen(port, { origin, host })).response.statusCode).toBe(403);
  });

  test('the page of this server may', async () => {
    const host = `localhost:${port}`;
    const headers = { origin: `http://${host}`, host, 'sec-fetch-site': 'same-origin' };
    const { status } = await send('PATCH', `/api/runs/${id}/notes`, { note: 'mine' }, headers);
    expect(status).toBe(200);
    const stream = await listen(port, headers);
    expect(stream.response.statusCode).toBe(200);
    stream.close();
  });

  test('a browser that says it comes from another site is believed', async () => {
    for (const site of ['cross-site', 'same-site']) {
      expect((await get('/api/runs', { 'sec-fetch-site': site })).status).toBe(403);
      expect((await send('PATCH', `/api/runs/${id}/notes`, {}, { 'sec-fetch-site': site })).status).toBe(403);
    }
    // A link that was typed or clicked elsewhere opens the page all the same.
    expect((await get('/', { 'sec-fetch-site': 'cross-site' })).status).not.toBe(403);
  });

  test('no answer lets other sites read it', async () => {
    const { headers } = await get('/api/runs');
    expect(headers['access-control-allow-origin']).toBeUndefined();
    expect((await ask(port, { method: 'OPTIONS', path: '/api/runs' })).status).toBe(405);
  });
});

describe('bodies', () => {
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    '',
    'application/jsonp',
  ])('of type "%s" are refused: a form of a stranger can send those', async type => {
    const headers = type === '' ? {} : { 'content-type': type };
    const answer = await ask(port, {
      method: 'PATCH',
      path: `/api/runs/${id}/notes`,
      headers: headers as Record<string, string>,
      body: '{"note":"x"}',
    });
    expect(answer.status).toBe(415);
  });

  test('that are too long are refused, with a length and without', async () => {
    const body = JSON.stringify({ note: 'x'.repeat(400_000) });
    const headers = { 'content-type': 'application/json' };
    const path = `/api/runs/${id}/notes`;
    expect((await ask(port, { method: 'PATCH', path, headers, body })).status).toBe(413);
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    expect((await ask(port, { method: 'PATCH', path, headers: chunked, body })).status).toBe(413);
  });

  test.each(['', '{', 'null', '[]', '{"tags":"x"}', '{"tags":[1]}', '{"evil":1}', '{"archived":"yes"}'])(
    'that are %s are refused with a sentence',
    async body => {
      const answer = await ask(port, {
        method: 'PATCH',
        path: `/api/runs/${id}/notes`,
        headers: { 'content-type': 'application/json' },
        body,
      });
      expect([400, 422]).toContain(answer.status);
      expect(answer.json<{ error: { message: string } }>().error.message).toMatch(/\w+ .*\w/);
    },
  );
});

describe('paths', async () => {
  writeFileSync(join(root, 'secret.txt'), 'top secret');
  const page = scratch();
  mkdirSync(join(page, 'assets'));
  writeFileSync(join(page, 'index.html'), '<!doctype html><title>the page</title>');
  writeFileSync(join(page, 'assets', 'app-abcdefgh12.js'), `console.log("${'x'.repeat(3000)}")`);
  writeFileSync(join(page, '..', 'keel-outside.js'), 'outside');
  const served = await start({ roots: [root], page });

  test.each([
    '/../secret.txt',
    '/..%2fsecret.txt',
    '/%2e%2e/secret.txt',
    '/assets/../../secret.txt',
    '/assets/..%5c..%5csecret.txt',
    '//etc/passwd',
    '/etc/passwd',
    '/%00',
    '/assets/%2e%2e%2f%2e%2e%2fkeel-outside.js',
    '/....//secret.txt',
    '/api/runs/..%2f..%2fsecret.txt',
    '/api/runs/%2e%2e/policy.onnx',
    `/api/runs/${encodeURIComponent(root)}`,
    `/api/runs/run-a`,
    `/api/runs/run-a/policy.onnx`,
    `/api/runs/__proto__`,
    `/api/runs/${id}%2f..%2f..`,
    `/api/runs/${id}/checkpoints/..%2f..%2f1/evaluate`,
    `/api/runs/${id}/../../../secret.txt`,
  ])('%s leads nowhere', async path => {
    for (const asked of [await served.get(path), await get(path)]) {
      expect(asked.text).not.toContain('top secret');
      expect(asked.text).not.toContain('outside');
      expect(asked.text).not.toContain('root:');
      // Either nothing, or the page itself, which shows that it knows no such place.
      if (asked.status === 200) expect(asked.text).toContain('the page');
      else expect([404, 405, 503, 400]).toContain(asked.status);
    }
  });

  test.each(['..', '-1', '1e3', '1.5', 'best', '99999999999999999999'])(
    'checkpoint %s is no step',
    async step => {
      const path = `/api/runs/${id}/checkpoints/${encodeURIComponent(step)}/evaluate`;
      expect([400, 404, 405]).toContain((await send('POST', path, {})).status);
      expect([400, 404]).toContain((await get(`/api/runs/${id}/policy.onnx?checkpoint=${step}`)).status);
    },
  );

  test('links that leave the roots are not followed', async () => {
    const [inside, outside] = [scratch(), scratch()];
    makeRun(outside, 'hidden', 6).writer.end('finished');
    makeRun(inside, 'plain', 6).writer.end('finished');
    symlinkSync(join(outside, 'hidden'), join(inside, 'link'));
    // One whose log alone is elsewhere.
    const sly = makeRun(inside, 'sly', 0);
    sly.writer.end('stopped');
    const target = join(outside, 'private.jsonl');
    writeFileSync(target, '{"train/iteration":1,"train/step":1,"env/secret":42}\n');
    rmSync(join(sly.dir, 'metrics.jsonl'), { force: true });
    symlinkSync(target, join(sly.dir, 'metrics.jsonl'));
    mkdirSync(join(inside, 'foreign'));
    writeFileSync(join(outside, 'progress.csv'), 'time/total_timesteps,train/approx_kl\n1,0.1\n2,0.1\n');
    symlinkSync(join(outside, 'progress.csv'), join(inside, 'foreign', 'progress.csv'));
    const own = await start({ roots: [inside] });
    await own.server.index.searched(patienceMs);
    const names = (await own.get('/api/runs')).json<RunList>().runs.map(({ name }) => name);
    expect(names).toEqual(['plain']);
  });

  test('the page is served whole, packed, and kept', async () => {
    const shown = await served.get('/runs/anything');
    expect([shown.status, shown.headers['cache-control']]).toEqual([200, 'no-cache']);
    expect(shown.text).toContain('the page');
    expect(String(shown.headers['content-security-policy'])).toContain("script-src 'self'");
    const plain = await served.get('/assets/app-abcdefgh12.js');
    expect(plain.headers['cache-control']).toContain('immutable');
    expect(plain.headers['content-type']).toContain('javascript');
    for (const coding of ['br', 'gzip']) {
      const packed = await served.get('/assets/app-abcdefgh12.js', { 'accept-encoding': coding });
      expect(packed.headers['content-encoding']).toBe(coding);
      expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 4);
    }
    const etag = plain.headers.etag!;
    expect((await served.get('/assets/app-abcdefgh12.js', { 'if-none-match': etag })).status).toBe(304);
    expect((await served.get('/assets/missing.js')).status).toBe(404);
  });

  test('without a built page it says what to do', async () => {
    const answer = await get('/');
    expect(answer.status).toBe(503);
    expect(answer.text).toContain('npm run build:web');
  });
});

describe('headers', () => {
  test('are on every answer, errors and the stream too', async () => {
    const stream = await listen(port);
    const all = [
      (await get('/api/runs')).headers,
      (await get('/')).headers,
      (await get('/api/nothing')).headers,
      (await get('/api/hello', { host: 'evil.example' })).headers,
      (await get(`/api/runs/${id}/report.html`)).headers,
      stream.response.headers,
    ];
    stream.close();
    for (const headers of all) {
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/script-src[^;]*unsafe/);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
      });
      expect(headers['x-powered-by']).toBeUndefined();
    }
    // Where the page was never built, a sentence with a style inside: no scripts at all.
    expect(String(all[0]['content-security-policy'])).toContain("script-src 'self'");
    expect(String(all[1]['content-security-policy'])).not.toContain('script-src');
  });
});

describe('token', async () => {
  const token = 'correct-horse-battery';
  /** As long as the right one, and like it up to its end. */
  const wrong = 'correct-horse-batterx';
  const guarded = await start({ roots: [root], token });
  const host = `127.0.0.1:${guarded.port}`;
  const entered = async (at: typeof guarded, given: string): Promise<string> =>
    (await at.get(`/?token=${given}`)).headers['set-cookie']![0];

  test('without it nothing is told', async () => {
    const cookie = (await entered(guarded, token)).split(';')[0];
    const last = cookie.at(-1) === 'A' ? 'B' : 'A';
    for (const path of ['/api/runs', `/api/runs/${id}`, '/', '/api/stream', '/assets/x.js']) {
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: `Bearer ${wrong}` },
        { authorization: `Basic ${token}` },
        { cookie: `keel_${guarded.port}=wrong` },
        { cookie: `keel_${guarded.port}=${token}` },
        { cookie: `${cookie.slice(0, -1)}${last}` },
        { cookie: cookie.replace(/^keel_\d+/, 'keel_1') },
      ]) {
        const answer = await guarded.get(path, headers as Record<string, string>);
        expect(answer.status).toBe(401);
        expect(answer.headers['set-cookie']).toBeUndefined();
        expect(answer.text).not.toContain('run-a');
        expect(answer.text).not.toContain(token);
      }
    }
    for (const path of ['/', '/api/runs', '/assets/x.js'])
      for (const given of [wrong, 'wrong', '', `${token}x`]) {
        const { status, headers } = await guarded.get(`${path}?token=${given}`);
        expect([status, headers['set-cookie'], headers.location]).toEqual([401, undefined, undefined]);
      }
  });

  test('who comes without it is told where it is: people on a page, programs as JSON', async () => {
    const own = await start({ roots: [root] });
    const none = { authorization: '' };
    const page = await own.get('/', none);
    expect([page.status, page.headers['content-type']]).toEqual([401, 'text/html; charset=UTF-8']);
    const file = `${process.env.KEEL_CONFIG_DIR}/token`;
    for (const words of ['start the page again in a terminal', '$KEEL_CONFIG_DIR/token'])
      expect(page.text).toContain(words);
    const told = await own.get('/api/runs', none);
    expect(told.status).toBe(401);
    expect(told.json()).toMatchObject({
      error: { code: 'token-needed', message: expect.stringContaining('$KEEL_CONFIG_DIR/token') },
    });
    for (const { text } of [page, told]) {
      expect(text).not.toContain(file);
      expect(text).not.toContain(readFileSync(file, 'utf8').trim());
    }
    // The token of this one is in no file.
    expect((await guarded.get('/')).text).not.toContain('CONFIG_DIR');
  });

  test('in the address once, then as a cookie that scripts do not see', async () => {
    const first = await guarded.get(`/?token=${token}&view=x`);
    expect(first.status).toBe(302);
    expect(first.headers.location).toBe('/?view=x');
    const cookie = first.headers['set-cookie']![0];
    expect(cookie).toMatch(new RegExp(`^keel_${guarded.port}=`));
    expect(cookie).toMatch(/HttpOnly/);
    expect(cookie).toMatch(/SameSite=Lax/);
    expect(cookie).not.toContain(token);
    const sent = cookie.split(';')[0];
    expect((await guarded.get('/api/runs', { cookie: sent })).status).toBe(200);
    expect((await listen(guarded.port, { cookie: sent })).response.statusCode).toBe(200);
    expect((await guarded.get('/api/runs', { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await guarded.get(`/api/runs?token=${token}`)).status).toBe(200);
    // Who opens the printed address again does not keep it in the address bar either.
    for (const given of [token, wrong]) {
      const again = await guarded.get(`/?token=${given}`, { cookie: sent });
      expect([again.status, again.headers.location]).toEqual([302, '/']);
    }
  });

  test('two servers on two ports have two cookies, and neither opens the other', async () => {
    const other = await start({ roots: [root], token });
    const [mine, theirs] = [await entered(guarded, token), await entered(other, token)].map(
      cookie => cookie.split(';')[0],
    );
    const both = { cookie: `${mine}; ${theirs}` };
    for (const at of [guarded, other]) expect((await at.get('/api/runs', both)).status).toBe(200);
    const renamed = mine.replace(String(guarded.port), String(other.port));
    expect((await other.get('/api/runs', { cookie: renamed })).status).toBe(401);
    // Who asks chooses the Host, by which the cookie is named, but not the port that answers.
    const forged = { host: `127.0.0.1:${guarded.port}`, cookie: mine };
    expect((await guarded.get('/api/runs', forged)).status).toBe(200);
    expect((await other.get('/api/runs', forged)).status).toBe(401);
  });

  test('leads nowhere else: slashes that would name another server are one', async () => {
    const paths = [
      ...['//evil.example/x', '///evil.example', '/\\evil.example/', '/\\\\evil.example', '\\\\evil.example'],
      ...[
        '/%5c/evil.example',
        '/%2f%2fevil.example',
        '/%2F/evil.example',
        '/.//evil.example',
        '/x/..//evil.example',
      ],
      ...[
        '/./\\evil.example',
        '/%2e%2e//evil.example',
        '/%09/evil.example',
        '//evil.example%2f..',
        '/@evil.example',
      ],
      'http://evil.example//evil.example/x',
    ];
    let redirected = 0;
    for (const path of paths) {
      const { status, headers } = await guarded.get(`${path}?token=${token}`);
      expect([302, 400], path).toContain(status);
      if (status !== 302) continue;
      redirected++;
      expect(new URL(headers.location!, 'http://here.example').host, path).toBe('here.example');
      expect(headers.location, path).toMatch(/^\/(?![\\/])/);
    }
    expect(redirected).toBeGreaterThan(paths.length / 2);
    expect((await guarded.get(`//evil.example/x?token=${token}`)).headers.location).toBe('/evil.example/x');
  });

  test('is no way around host and origin', async () => {
    const authorization = `Bearer ${token}`;
    expect((await guarded.get('/api/runs', { authorization, host: 'evil.example' })).status).toBe(403);
    const origin = 'https://evil.example';
    expect((await guarded.get('/api/runs', { authorization, origin, host })).status).toBe(403);
  });

  test('is the same everywhere for one user, unless nobody wants one on this machine', async () => {
    const [here, open] = [await start({ roots: [root] }), await start({ roots: [root], host: '0.0.0.0' })];
    const own = new URL(open.server.url).searchParams.get('token');
    expect(own).toMatch(/^[\w-]{32}$/);
    expect(new URL(here.server.url).searchParams.get('token')).toBe(own);
    expect((await open.get('/api/runs', { authorization: '' })).status).toBe(401);
    expect((await open.get('/api/runs', { authorization: `Bearer ${own}` })).status).toBe(200);
    const none = await start({ roots: [root], token: false });
    expect(new URL(none.server.url).search).toBe('');
    expect((await none.get('/api/runs')).status).toBe(200);
    await expect(start({ roots: [root], token: false, host: '0.0.0.0' })).rejects.toThrow(
      'leave one of them out',
    );
  });
});

test('errors are sentences: no stack, no path of the machine', async () => {
  for (const path of [
    '/api/runs/nothing',
    '/api/nothing',
    `/api/runs/${id}/series?x=evil`,
    `/api/runs/${id}/series?from=a`,
  ]) {
    const { status, text } = await get(path);
    expect(status).toBeGreaterThanOrEqual(400);
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    expect(error.code).toMatch(/^[a-z-]+$/);
    expect(error.message).toMatch(/ /);
    expect(text).not.toMatch(/node_modules|\.ts:|at \w+ \(/);
    expect(text).not.toContain(root);
  }
});
