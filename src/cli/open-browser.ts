/** Opens an address in the browser of whoever sits here; where there is none, nothing happens. */
import { spawn } from 'node:child_process';

export function openBrowser(url: string): void {
  const [program, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url]
        : ['xdg-open', url];
  const child = spawn(program!, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address was printed
  child.unref();
}
