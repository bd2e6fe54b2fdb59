/** The server's answers; an error is a sentence for people, with the server's own words where it has some. */
import type {
  Action,
  ActionAnswer,
  AllSettings,
  CheckpointsAnswer,
  ClusterAnswer,
  CompletionsAnswer,
  DiagnosisAnswer,
  EvaluationAnswer,
  EventsAnswer,
  Hello,
  Notes,
  OutputAnswer,
  ReplaysAnswer,
  RunDetail,
  RunList,
  SeriesAnswer,
  SettingsAnswer,
  StudyAnswer,
  StudyList,
  XAxis,
} from '../../src/server/api.ts';

export interface Problem extends Error {
  /** The HTTP status, or 0 if there was no answer. */
  status: number;
}

function problem(message: string, status: number): Problem {
  return Object.assign(new Error(message), { status });
}

/** What is wrong, in a sentence. */
export function messageOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String(error);
}

export function statusOf(error: unknown): number {
  return (error as Partial<Problem> | null)?.status ?? 0;
}

/** The API lies beside the page, wherever that is served from. */
export const apiUrl = (path: string): string => new URL(`api/${path}`, document.baseURI).href;

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(apiUrl(path), {
      ...init,
      headers: { Accept: 'application/json', ...init.headers },
    });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw problem('The server does not answer.', 0);
  }
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw problem(
      `The server's answer to ${path.split('?')[0]} could not be read (status ${response.status}).`,
      response.status,
    );
  }
  if (response.ok) return body as T;
  const said = (body as { error?: { message?: unknown } } | null)?.error?.message;
  throw problem(
    typeof said === 'string' ? said : `The server answered with status ${response.status}.`,
    response.status,
  );
}

/** A file's bytes. */
async function bytesOf(path: string): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(apiUrl(path));
  } catch {
    throw problem('The server does not answer.', 0);
  }
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  const body = (await response.json().catch(() => null)) as { error?: { message?: unknown } } | null;
  const said = body?.error?.message;
  throw problem(
    typeof said === 'string' ? said : `The server answered with status ${response.status}.`,
    response.status,
  );
}

const json = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

const run = (id: string, rest = '') => `runs/${encodeURIComponent(id)}${rest}`;

export const client = {
  hello: () => request<Hello>('hello'),
  runs: () => request<RunList>('runs'),
  studies: () => request<StudyList>('studies'),
  study: (id: string, version: string | null) =>
    request<StudyAnswer>(
      `studies/${encodeURIComponent(id)}${version === null ? '' : `?version=${encodeURIComponent(version)}`}`,
    ),
  settings: () => request<AllSettings>('settings'),
  settingDocs: (id: string) => request<SettingsAnswer>(run(id, '/settings')),
  output: (id: string) => request<OutputAnswer>(run(id, '/output')),
  detail: (id: string) => request<RunDetail>(run(id)),
  series: (
    id: string,
    ask: { metrics: readonly string[]; x: XAxis; from: number | null; to: number | null; buckets: number },
    signal?: AbortSignal,
  ) => {
    const range = ask.from === null || ask.to === null ? '' : `&from=${ask.from}&to=${ask.to}`;
    const names = ask.metrics.map(encodeURIComponent).join(',');
    return request<SeriesAnswer>(
      run(id, `/series?metrics=${names}&x=${ask.x}${range}&buckets=${ask.buckets}`),
      signal === undefined ? {} : { signal },
    );
  },
  events: (id: string, after: number | null) =>
    request<EventsAnswer>(run(id, `/events${after === null ? '' : `?after=${after}`}`)),
  diagnosis: (id: string) => request<DiagnosisAnswer>(run(id, '/diagnosis')),
  checkpoints: (id: string) => request<CheckpointsAnswer>(run(id, '/checkpoints')),
  completions: (id: string, before: number | null) =>
    request<CompletionsAnswer>(run(id, `/completions${before === null ? '' : `?before=${before}`}`)),
  replays: (id: string) => request<ReplaysAnswer>(run(id, '/replays')),
  replay: (id: string, name: string, version: string) =>
    bytesOf(run(id, `/replays/${encodeURIComponent(name)}?v=${encodeURIComponent(version)}`)),
  cluster: (id: string) => request<ClusterAnswer>(run(id, '/cluster')),
  evaluate: (id: string, step: number) =>
    request<EvaluationAnswer>(run(id, `/checkpoints/${step}/evaluate`), json('POST', {})),
  notes: (id: string, notes: Partial<Notes>) => request<Notes>(run(id, '/notes'), json('PATCH', notes)),
  act: (id: string, action: Action) => request<ActionAnswer>(run(id, '/actions'), json('POST', action)),
  reportUrl: (ids: readonly string[]) =>
    apiUrl(`report.html?${ids.map(id => `run=${encodeURIComponent(id)}`).join('&')}`),
  fileUrl: (id: string, name: string) => apiUrl(run(id, `/${name}`)),
};
