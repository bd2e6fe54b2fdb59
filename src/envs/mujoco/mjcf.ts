/**
 * MuJoCo models as data: an element is a tag, its attributes and its children, and `toXml` writes the MJCF that the engine
 * compiles. Models are written this way so that a robot can be generated and its figures stay numbers until the end.
 */
import { fail, show } from '../errors.ts';

/** What an attribute of an MJCF element can be. */
export type AttributeValue = number | string | boolean | readonly number[];
/** The attributes of an MJCF element by name. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** An MJCF element with all that is below it. */
export interface Element {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly Element[];
}

const NAME = /^[A-Za-z][\w]*$/;

/** `element('geom', { type: 'sphere', size: 0.1 })`; attributes that are undefined are left out. */
export function element(
  tag: string,
  attributes: Attributes = {},
  children: readonly Element[] = [],
): Element {
  return { tag, attributes, children };
}

/** The MJCF text of a model: `toXml(element('mujoco', { model: 'ball' }, […]))`. */
export function toXml(root: Element): string {
  const lines: string[] = [];
  write(root, '', lines);
  return `${lines.join('\n')}\n`;
}

function write({ tag, attributes, children }: Element, indent: string, lines: string[]): void {
  if (!NAME.test(tag)) fail('definition-invalid', `${show(tag)} is not the name of an MJCF element`);
  let open = `${indent}<${tag}`;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (!NAME.test(name)) fail('definition-invalid', `${tag}: ${show(name)} is not the name of an attribute`);
    open += ` ${name}="${attributeText(tag, name, value)}"`;
  }
  if (children.length === 0) {
    lines.push(`${open}/>`);
    return;
  }
  lines.push(`${open}>`);
  for (const child of children) write(child, `${indent}  `, lines);
  lines.push(`${indent}</${tag}>`);
}

function attributeText(tag: string, name: string, value: AttributeValue): string {
  if (typeof value === 'string')
    return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
  if (typeof value === 'boolean') return String(value);
  const numbers = typeof value === 'number' ? [value] : value;
  for (const number of numbers) {
    if (!Number.isFinite(number)) {
      fail(
        'definition-invalid',
        `${tag}: ${name} is ${show(value)}, not finite: check the figures it comes from`,
      );
    }
  }
  // The shortest text that reads back as the same number: nothing is rounded on the way to the engine.
  return numbers.map(String).join(' ');
}
