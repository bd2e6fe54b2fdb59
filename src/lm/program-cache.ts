import { giveTurn } from '../base/turns.ts';
import type { Graph } from '../engine/graph.ts';
import { compile, type Program } from '../engine/program.ts';

/** Where and how programs run. */
export interface Runtime {
  readonly device?: 'cpu' | 'webgpu' | 'cuda';
  readonly threads?: number;
}

/** Programs for the shapes that come up, compiled on first use; of too many the one that was not used for longest goes. */
export class ProgramCache {
  readonly #runtime: Runtime;
  /** Each takes memory of its own. */
  readonly #most: number;
  readonly #programs = new Map<string, Promise<Program>>();

  constructor(runtime: Runtime, most = 24) {
    this.#runtime = runtime;
    this.#most = most;
  }

  /** Programs themselves never wait, so whoever runs one after the other gives signals a turn here. */
  async get(name: string, graph: () => Graph): Promise<Program> {
    await giveTurn();
    const known = this.#programs.get(name);
    // Last in the map is used last.
    this.#programs.delete(name);
    const program = known ?? compile(graph(), { ...this.#runtime, planMemory: false, checkFeeds: false });
    this.#programs.set(name, program);
    if (this.#programs.size > this.#most) {
      const [[oldest, old]] = this.#programs;
      this.#programs.delete(oldest);
      (await old).dispose();
    }
    return program;
  }

  async dispose(): Promise<void> {
    for (const program of await Promise.all(this.#programs.values())) program.dispose();
    this.#programs.clear();
  }
}
