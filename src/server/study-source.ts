/**
 * Studies on the disk. One is a root, or directly in one; its runs are in its directory and appear among the others. How
 * its files are read is for `reading` to know.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { KeelError, RunError } from '../base/errors.ts';
import { isRunId } from '../runs/layout.ts';
import type { Study, Trial } from '../studies/schema.ts';
import { studyPaths } from '../studies/store.ts';
import { readWorkers, workersPath } from '../studies/workers.ts';
import type { StudyImportance } from './api.ts';
import { idOf, nameUnder, type Root, staysInside } from './runs/places.ts';
import type { FoundStudy, StudySource } from './studies.ts';

/** Reads one study; kept, so that of a journal only what is new is read. */
export interface StudyReader {
  read(): { readonly study: Study; readonly trials: readonly Trial[] };
}

export interface StudyReading {
  /** A study that is damaged or of another version is an error of ours in a sentence, here or when it is read. */
  open(dir: string): StudyReader;
  importance(study: Study, trials: readonly Trial[]): StudyImportance;
  /** What the run of a trial and a seed is called. */
  runIdOf(study: Study, trial: Trial, seed: number): string;
}

/** Where studies and their runs are, for who looks for runs. */
export interface StudyFiles extends StudySource {
  /** The directories in which their runs are. */
  readonly runDirectories: readonly { readonly path: string; readonly root: Root }[];
}

export function createStudySource(roots: readonly Root[], reading: StudyReading): StudyFiles {
  const places = new Map<string, { readonly dir: string; readonly root: Root }>();
  const readers = new Map<string, StudyReader>();

  function find(): void {
    places.clear();
    for (const root of roots) {
      if (existsSync(studyPaths(root.path).study)) add(root.path, root);
      else for (const name of namesIn(root.path)) if (isRunId(name)) add(join(root.path, name), root);
    }
  }

  function add(dir: string, root: Root): void {
    const { study, journal, runs } = studyPaths(dir);
    if (!existsSync(study)) return;
    if (staysInside([dir, study, journal, workersPath(dir), runs], roots))
      places.set(idOf(dir), { dir, root });
  }

  return {
    list() {
      find();
      for (const id of readers.keys()) if (!places.has(id)) readers.delete(id);
      return [...places].flatMap(([id, { dir, root }]): FoundStudy[] => {
        const { study, journal } = studyPaths(dir);
        const [asked, written, workers] = [study, journal, workersPath(dir)].map(path =>
          statSync(path, { throwIfNoEntry: false }),
        );
        if (asked === undefined) return [];
        const version = [asked, written]
          .map(stat => (stat === undefined ? '' : `${stat.ino}.${stat.size}.${stat.mtimeMs}`))
          .join('-');
        return [
          {
            id,
            name: nameUnder(dir, root),
            root: root.shown,
            version,
            updatedAt: (written ?? asked).mtimeMs,
            workersAt: workers?.mtimeMs ?? null,
          },
        ];
      });
    },
    open(id) {
      const place = places.get(id);
      if (place === undefined) return undefined;
      try {
        let reader = readers.get(id);
        if (reader === undefined) {
          reader = reading.open(place.dir);
          readers.set(id, reader);
        }
        return reader.read();
      } catch (error) {
        // It is read from its beginning when it has changed again.
        readers.delete(id);
        if (!(error instanceof KeelError)) throw error;
        throw new RunError(error.message.replaceAll(place.root.path, place.root.shown), { cause: error });
      }
    },
    workers(id) {
      const place = places.get(id);
      return place === undefined ? undefined : readWorkers(place.dir);
    },
    importance: (study, trials) => reading.importance(study, trials),
    runId: (id, run) => idOf(join(studyPaths(places.get(id)?.dir ?? '').runs, run)),
    runName: (study, trial, seed) => reading.runIdOf(study, trial, seed),
    get runDirectories() {
      return [...places.values()].map(({ dir, root }) => ({ path: studyPaths(dir).runs, root }));
    },
  };
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // It may come, or be a file.
    return [];
  }
}
