import { painter, type Tone } from '../base/terminal.ts';
import type { CheckLevel, CheckReport } from './check.ts';

const marks: Record<CheckLevel, string> = { error: 'error  ', warning: 'warning', info: 'info   ' };
const colours: Record<CheckLevel, Tone> = { error: 'red', warning: 'yellow', info: 'cyan' };

/** A report as lines for a terminal: errors first, then warnings, then what was measured. */
export function formatCheckReport(report: CheckReport, { colour = false } = {}): string {
  const paint = painter(colour);
  const levels: CheckLevel[] = ['error', 'warning', 'info'];
  const width = Math.max(0, ...report.findings.map(({ code }) => code.length));
  const lines = levels.flatMap(level =>
    report.findings
      .filter(found => found.level === level)
      .map(
        ({ code, message }) => `  ${paint(marks[level], colours[level])}  ${code.padEnd(width)}  ${message}`,
      ),
  );
  const count = (level: CheckLevel): string => {
    const n = report.findings.filter(found => found.level === level).length;
    return `${n} ${level}${n === 1 ? '' : 's'}`;
  };
  const verdict = report.passed ? paint('passed', 'green') : paint('failed', 'red');
  return [`${report.id ?? 'environment'}: ${verdict}, ${count('error')}, ${count('warning')}`, ...lines].join(
    '\n',
  );
}
