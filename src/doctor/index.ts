/**
 * The doctor as a library: reads the logs of any trainer, or series that you have in memory, and says what is wrong and
 * what to change.
 */

export { type Beside, besideOf, type Parting, type SettingApart } from './beside.ts';
export type { CanonicalRun, CanonicalSeries, KlMeaning } from './canonical.ts';
export { diagnose } from './diagnose.ts';
export { type CanonicalOptions, dialects, toCanonical } from './dialects/translate.ts';
export { mapProblem, metricOf } from './dialects/user-map.ts';
export {
  type ExamineOptions,
  type ExamineProgress,
  type Examiner,
  examine,
  type Search,
} from './doctor.ts';
export { diagnosePath, examinePaths } from './examine-paths.ts';
export {
  type Checked,
  type Cite,
  type Diagnosis,
  type Finding,
  type Mark,
  type RootCause,
  rootCauses,
  type Severity,
  severities,
  type Understood,
  type Verdict,
  verdicts,
} from './findings.ts';
export { firstHarm } from './first-harm.ts';
export type { Fix, SettingChange } from './fixes.ts';
export { type FollowEvent, type FollowOptions, follow } from './follow.ts';
export { diagnoseSeries, reportSeries, type SeriesContext, type SeriesInput } from './in-memory.ts';
export type { KnownConfig } from './known-settings.ts';
export type { RawRun } from './raw-run.ts';
export type { Candidate } from './readers/candidate.ts';
export { ReadError } from './readers/errors.ts';
export { findRuns } from './readers/find.ts';
export { readRun } from './readers/read.ts';
export { type CauseText, causeText, causeTexts } from './report/causes.ts';
export { clean } from './report/clean.ts';
export { explain, listRules, unknownCode } from './report/explain.ts';
export { type HtmlOptions, renderHtml } from './report/html.ts';
export { type JsonRun, renderJson, toReport } from './report/json.ts';
export { type ManyOptions, renderTerminalRuns } from './report/many.ts';
export { type MarkdownOptions, renderMarkdown } from './report/markdown.ts';
export { type News, newsOf } from './report/news.ts';
export { runReport } from './report/report-of-run.ts';
export {
  exitCodeOf,
  isRead,
  isUnreadable,
  type Outcome,
  type RunReport,
  type Unreadable,
} from './report/run-report.ts';
export { renderTerminal, type TerminalOptions } from './report/terminal.ts';
export { writeReport } from './report/write.ts';
export { rules } from './rules/all.ts';
export type { Rule, RuleText } from './rules/rule.ts';
export { type Series, SeriesBuilder } from './series.ts';
