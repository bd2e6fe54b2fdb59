/** The tab's title and icon tell the worst verdict of what is running, or of the run that is open; a notification if wanted. */
import { causeWords, type Verdict, verdictWords, worstOf } from '../../src/doctor/findings.ts';
import type { RunSummary } from '../../src/server/api.ts';
import { connection } from './connection.svelte.ts';
import { preferences } from './preferences.svelte.ts';
import { runs } from './runs.svelte.ts';
import { say } from './say.svelte.ts';
import { runLink, viewState } from './view.svelte.ts';

const marks: Readonly<Record<Verdict, string>> = { healthy: '', watch: '▲ ', sick: '■ ', 'cannot-tell': '' };
/** What has a shape in the tab's icon; what nobody can tell looks as if nothing was known. */
const iconOf = (verdict: Verdict | null): string =>
  verdict === null || verdict === 'cannot-tell' ? './favicon.svg' : `./favicon-${verdict}.svg`;

/** Call once, inside a component. */
export function keepAlerts(): void {
  const open = $derived(viewState.view.page === 'run' ? runs.get(viewState.view.run ?? '') : undefined);
  const verdict = $derived(
    open !== undefined
      ? open.verdict
      : worstOf(runs.all.filter(r => r.state === 'running' && !r.notes.archived).map(r => r.verdict)),
  );
  $effect(() => {
    const { page } = viewState.view;
    const name = open?.name ?? (page === 'compare' ? 'Compare' : page === 'study' ? 'Study' : null);
    // What nobody can tell any more is not told.
    const told = connection.gone ? null : verdict;
    const state = connection.gone
      ? 'no answer · '
      : told === null || told === 'healthy'
        ? ''
        : `${verdictWords(told)} · `;
    document.title = `${told === null ? '' : marks[told]}${state}${name === null ? '' : `${name} · `}Keel`;
    const icon = document.getElementById('favicon') as HTMLLinkElement | null;
    const href = iconOf(told);
    if (icon !== null && icon.getAttribute('href') !== href) icon.setAttribute('href', href);
  });

  /** What was told last, so that only a change is told. */
  const known = new Map<string, Verdict | null>();
  $effect(() => {
    for (const run of runs.all) {
      const before = known.get(run.id);
      known.set(run.id, run.verdict);
      if (before === undefined || before === run.verdict || run.verdict === null) continue;
      if (run.verdict === 'healthy' && before === null) continue;
      tell(run, run.verdict);
    }
  });
}

function tell(run: RunSummary, verdict: Verdict): void {
  const cause = run.rootCause === null ? '' : `: ${causeWords(run.rootCause)}`;
  const text = `${run.name} is now ${verdictWords(verdict)}${cause}`;
  if (verdict !== 'healthy') say.aloud(text);
  if (!preferences.notify || !('Notification' in window) || Notification.permission !== 'granted') return;
  try {
    const notification = new Notification(`Keel: ${verdictWords(verdict)}`, {
      body: text,
      tag: run.id,
      icon: iconOf(verdict),
    });
    notification.onclick = () => {
      focus();
      location.hash = runLink(run.id);
    };
  } catch {
    // Some phones know the name only.
  }
}
