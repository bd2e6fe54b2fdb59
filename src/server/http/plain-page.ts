/** A page for a person where the real one cannot be shown: one heading, a few sentences, in the page's own looks. */

/** Such a page has its style inside and nothing else. */
export const plainPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const style = `
:root { color-scheme: light dark; --bg: #f6f6f3; --panel: #fff; --ink: #1b1e24; --ink-2: #4a505a; --line: #dfdfda; --accent: #1f5ba8; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #121519; --panel: #1a1d22; --ink: #e9ebee; --ink-2: #b4b9c1; --line: #2b2f36; --accent: #7ab4f5; }
}
body { margin: 0; padding: 16px; background: var(--bg); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 520px; margin: 12vh auto 0; padding: 22px 26px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); }
h1 { margin: 0 0 8px; font-size: 19px; }
p { margin: 0 0 10px; color: var(--ink-2); }
p:last-child { margin: 0; }
a { color: var(--accent); }
code { font: 13.5px ui-monospace, monospace; color: var(--ink); }
`;

/** `paragraphs` are HTML: what comes from outside must be escaped before. */
function plainPage(title: string, paragraphs: readonly string[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Keel: ${title}</title><style>${style}</style></head>
<body><main><h1>${title}</h1>
${paragraphs.map(text => `<p>${text}</p>`).join('\n')}
</main></body></html>
`;
}

/** Shown where the page was never built: a checkout without its page. */
export const missingPage = plainPage('The page is not built', [
  "The server runs, but the page's files are missing. Run <code>npm run build:web</code> in the checkout of Keel, then load this again.",
  'The data is there: <a href="/api/runs">/api/runs</a>.',
]);

/** Shown to who comes without the token, and so without a command, which could name a directory. `file` is where its owner finds it. */
export const tokenPage = (file: string | undefined): string =>
  plainPage('A token is needed', [
    'This page is for who started it. Open the address that <code>keel</code> printed then, with <code>?token=</code> in it; from then on this browser needs it no more.',
    file === undefined
      ? 'If it is no longer on the screen, start the page again in a terminal: it prints the address.'
      : `If it is no longer on the screen, start the page again in a terminal: it prints one with the same token. Or take the token from <code>${escaped(file)}</code>, a file of who started it, and add it to this address: <code>/?token=…</code>`,
  ]);

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, character => `&#${character.codePointAt(0)};`);
