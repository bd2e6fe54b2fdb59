/** Text in HTML: whatever is put into the template is escaped, unless it is markup that the template made. */

const made: unique symbol = Symbol('markup');

/** HTML that was made by {@link html}. */
export interface Markup {
  readonly [made]: string;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => entities[character]);
}

type Part = string | number | Markup | readonly Part[];

function shown(part: Part): string {
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part));
  return made in part ? part[made] : part.map(shown).join('');
}

/** `` html`<b>${name}</b>` ``: the literal parts are HTML, what is put in is text. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return { [made]: literals.reduce((text, literal, i) => text + shown(parts[i - 1]) + literal) };
}

export const textOf = (markup: Markup): string => markup[made];
