/** Reports in files: whole or absent. */
import { writeFileAtomic } from '../../base/files.ts';

/** Writes a report so that nobody sees half of it; a report that was there before is replaced. */
export function writeReport(file: string, text: string): void {
  // It can be made again, so a power cut may lose it.
  writeFileAtomic(file, text, false);
}
