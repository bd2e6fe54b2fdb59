/** Takes the pictures of docs/page.md: `npx tsx test/page/support/take-pictures.ts`. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, openPage } from './browser.ts';
import { builtPage } from './built-page.ts';
import { startFakeServer } from './fake-server.ts';
import { galleryStudy } from './fake-studies.ts';
import { gallery } from './gallery.ts';

const folder = fileURLToPath(new URL('../../../docs/pictures', import.meta.url));

interface Picture {
  readonly name: string;
  readonly hash: string;
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
  /** Where the pointer is, in shares of the first plot. */
  readonly pointer?: readonly [number, number];
}

const pictures: readonly Picture[] = [
  { name: 'overview', hash: '#/', width: 1080, height: 560 },
  { name: 'run', hash: '#/runs/sick', width: 1080, height: 790, pointer: [0.66, 0.4] },
  { name: 'doctor', hash: '#/runs/sick/doctor', width: 1080, height: 800 },
  { name: 'compare', hash: '#/compare?runs=a1,a2,b1,b2&by=learningRate', width: 1080, height: 720 },
  { name: 'study', hash: '#/studies/s1', width: 1080, height: 1000 },
  { name: 'phone', hash: '#/runs/sick', width: 360, height: 740 },
];

async function main(): Promise<void> {
  const [browser, server] = await Promise.all([
    launch(),
    startFakeServer(await builtPage(), gallery(), new Map([['s1', galleryStudy()]])),
  ]);
  await mkdir(folder, { recursive: true });
  for (const { name, hash, width, height, dark, pointer } of pictures) {
    const page = await openPage(browser, server.url + hash, {
      width,
      height,
      colorScheme: dark ? 'dark' : 'light',
    });
    await page.waitForTimeout(1200);
    if (pointer !== undefined) {
      const box = (await page.locator('.plot-host .u-over').first().boundingBox())!;
      await page.mouse.move(box.x + box.width * pointer[0], box.y + box.height * pointer[1]);
      await page.waitForTimeout(200);
    }
    await page.screenshot({ path: join(folder, `${name}.png`) });
    await page.context().close();
  }
  await browser.close();
  await server.close();
}

await main();
