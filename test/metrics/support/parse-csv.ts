/** RFC 4180, character by character: shares nothing with the writer. */
export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let [record, field, quoted]: [string[], string, boolean] = [[], '', false];
  const endField = (): void => {
    record.push(field);
    field = '';
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',') endField();
    else if (c === '\n') {
      endField();
      records.push(record);
      record = [];
    } else field += c;
  }
  if (quoted || field !== '' || record.length > 0) throw new Error('ends in half a record');
  return records;
}
