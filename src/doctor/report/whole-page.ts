/** A page that is one file. Its policy allows one style and at most one script, by their hashes, and no address at all. */
import { createHash } from 'node:crypto';
import { html, type Markup, textOf } from './escape.ts';

export interface WholePage {
  readonly title: string;
  /** As it stands: its hash is in the policy. */
  readonly style: string;
  readonly body: Markup;
  /** Of the body, for the style. */
  readonly kind?: string;
  /** A program, as it stands, and the JSON that it reads from the element `data`. */
  readonly program?: { readonly script: string; readonly data: unknown };
}

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

export function wholePage({ title, style, body, kind, program }: WholePage): string {
  const script = program === undefined ? '' : ` script-src ${hashOf(program.script)};`;
  const policy = `default-src 'none'; style-src ${hashOf(style)};${script} base-uri 'none'; form-action 'none'`;
  const head = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>`;
  const opened = html`</style>
</head>
${kind === undefined ? html`<body>` : html`<body class="${kind}">`}
${body}
`;
  const scripts =
    program === undefined
      ? ''
      : `<script type="application/json" id="data">${embedded(program.data)}</script>\n<script>${program.script}</script>\n`;
  return `<!doctype html>\n${textOf(head)}${style}${textOf(opened)}${scripts}</body>\n</html>\n`;
}

/** JSON that cannot end the element that it is in. */
const embedded = (data: unknown): string =>
  JSON.stringify(data)
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
