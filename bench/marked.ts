/** A document with what stands between `<!-- name -->` and the next `<!-- end -->` replaced by what was measured. */
export function withMarked(text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name} -->\n`, '<!-- end -->'];
  const from = text.indexOf(start);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0)
    throw new Error(`there is no ${start.trim()} … ${end} in the document: put both where the tables go`);
  return `${text.slice(0, from + start.length)}${content}\n${text.slice(to)}`;
}
